//! How to reach the server, and the settings of the store behind it.

use std::time::Duration;

use jobyard_model::LeaseSettings;
use tokio_postgres::config::TargetSessionAttrs;

use crate::StoreError;

/// Un-ended jobs that one owner may have, unless set.
pub const DEFAULT_MAX_UNENDED_PER_OWNER: u64 = 2_000_000;

/// Settings of a [`super::PostgresStore`].
#[derive(Debug, Clone)]
pub struct PostgresConfig {
    /// A libpq connection string or URL; may name several hosts, of which the primary is taken.
    pub url: String,
    /// The most connections for changes. Two more are used for wake-ups.
    pub pool_size: usize,
    /// The most connections for reads.
    pub read_pool_size: usize,
    /// How long leases last.
    pub lease: LeaseSettings,
    /// The most un-ended jobs of one owner. Exact for one server; several may each overshoot by what they were
    /// granted at their last count.
    pub max_unended_per_owner: u64,
    /// How wake-ups travel between processes.
    pub wake_on: WakeOn,
    /// The most one statement may take.
    pub statement_timeout: Duration,
    /// Where many rows are looked over, for lists and dashboards: a standby, say. The same server unless set.
    pub dashboard_url: Option<String>,
    /// The most connections for that.
    pub dashboard_pool_size: usize,
    /// The most one such look may take, and wait for a connection.
    pub dashboard_timeout: Duration,
    /// The most it may take to get a connection.
    pub connect_timeout: Duration,
    /// While a walk along an index that holds what is over takes the server longer than this, it is made beside the
    /// placement passes, which then begin where the last one found what waits and lives.
    pub quick_walk: Duration,
}

/// How wake-ups travel between processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeOn {
    /// By NOTIFY after commits, and LISTEN.
    Notify,
    /// They don't: whoever waits polls (a pooler in transaction mode stands before the server).
    Poll,
}

impl PostgresConfig {
    /// The settings that suit most, for this server.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            pool_size: 8,
            read_pool_size: 4,
            lease: LeaseSettings::default(),
            max_unended_per_owner: DEFAULT_MAX_UNENDED_PER_OWNER,
            wake_on: WakeOn::Notify,
            statement_timeout: Duration::from_secs(10),
            dashboard_url: None,
            dashboard_pool_size: 4,
            dashboard_timeout: Duration::from_secs(3),
            connect_timeout: Duration::from_secs(5),
            quick_walk: Duration::from_millis(5),
        }
    }

    /// What the driver needs to know. Every wait for the network has an end.
    pub(super) fn driver_config(&self) -> Result<tokio_postgres::Config, StoreError> {
        let settings = Self::session_settings(self.statement_timeout, "force_generic_plan");
        self.config_for(&self.url, TargetSessionAttrs::ReadWrite, &settings)
    }

    /// The same for looking over many rows: each statement is planned for itself.
    pub(super) fn dashboard_config(&self) -> Result<tokio_postgres::Config, StoreError> {
        let settings = Self::session_settings(self.dashboard_timeout, "force_custom_plan");
        let url = self.dashboard_url.as_ref();
        let target = if url.is_some() { TargetSessionAttrs::Any } else { TargetSessionAttrs::ReadWrite };
        self.config_for(url.unwrap_or(&self.url), target, &settings)
    }

    fn config_for(
        &self,
        url: &str,
        target: TargetSessionAttrs,
        settings: &str,
    ) -> Result<tokio_postgres::Config, StoreError> {
        let mut config: tokio_postgres::Config = url.parse().map_err(|error| StoreError::Refused {
            doing: "reading the datastore's connection string",
            source: Box::<tokio_postgres::Error>::new(error),
        })?;
        config
            .target_session_attrs(target)
            .connect_timeout(self.connect_timeout)
            .keepalives_idle(Duration::from_secs(10))
            .keepalives_interval(Duration::from_secs(5))
            .keepalives_retries(2)
            .tcp_user_timeout(Duration::from_secs(15));
        if config.get_application_name().is_none() {
            config.application_name("jobyard");
        }
        let given = config.get_options().unwrap_or_default().to_owned();
        config.options(format!("{given} {settings}"));
        Ok(config)
    }

    /// What each session is set to, beside what the URL's `options` say.
    ///
    /// Every statement of ours is driven by an index or is meant to read a small table whole. Plans are made once a
    /// connection and must not depend on statistics taken while a table was empty, so the planner is held to them.
    fn session_settings(timeout: Duration, plans: &str) -> String {
        format!(
            "-c statement_timeout={} -c idle_in_transaction_session_timeout=30000 -c synchronous_commit=on \
             -c default_transaction_isolation=read\\ committed -c plan_cache_mode={plans} -c jit=off \
             -c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c random_page_cost=1.1 \
             -c client_min_messages=warning",
            timeout.as_millis()
        )
    }

    /// The most a round trip may take before the connection is given up: longer than any statement may run.
    pub(super) fn reply_within(&self) -> Duration {
        self.statement_timeout + Duration::from_secs(5)
    }
}
