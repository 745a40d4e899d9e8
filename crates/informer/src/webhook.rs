//! The call that tells somebody outside of an event, signed, so that they know that it is from us.
//!
//! Owns the form of the call. Never decides when to call again.

use std::fmt;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use jobyard_model::Timestamp;
use reqwest::header::CONTENT_TYPE;
use reqwest::{StatusCode, Url};
use sha2::Sha256;
use thiserror::Error;

/// Whoever takes longer to answer is asked again.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// A shorter key can be guessed.
const SHORTEST_KEY_BYTES: usize = 16;

/// Where to call, and the key that both sides know.
#[derive(Clone)]
pub struct Webhook {
    http: reqwest::Client,
    url: Url,
    /// Begun with the key.
    mac: Hmac<Sha256>,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Webhook").finish_non_exhaustive()
    }
}

/// Why there can't be such a webhook.
#[derive(Debug, Error)]
pub enum WebhookError {
    /// The address is not one we can call.
    #[error("{0}; expected something like http://alerts.example/jobyard")]
    Url(String),
    /// The key could be guessed.
    #[error("the key must have at least {SHORTEST_KEY_BYTES} bytes: head -c 32 /dev/urandom | base64")]
    Key,
    /// The HTTP client can't be set up.
    #[error("the HTTP client could not be set up")]
    Client(#[source] reqwest::Error),
}

/// Why a call has to be made again.
#[derive(Debug, Error)]
pub(crate) enum TellError {
    #[error("no answer")]
    Unreachable(#[source] reqwest::Error),
    #[error("the answer was {0}")]
    Refused(StatusCode),
}

impl Webhook {
    /// Calls nobody yet.
    ///
    /// # Errors
    /// See [`WebhookError`].
    pub fn new(url: &str, key: &[u8]) -> Result<Self, WebhookError> {
        let url = Url::parse(url).map_err(|error| WebhookError::Url(error.to_string()))?;
        match url.scheme() {
            "http" => {}
            "https" => return Err(WebhookError::Url("https is not available yet".to_owned())),
            _ => return Err(WebhookError::Url("it does not begin with http://".to_owned())),
        }
        if key.len() < SHORTEST_KEY_BYTES {
            return Err(WebhookError::Key);
        }
        let mac = Hmac::new_from_slice(key).map_err(|_| WebhookError::Key)?;
        let http = reqwest::Client::builder()
            .user_agent(concat!("jobyard/", env!("CARGO_PKG_VERSION")))
            .timeout(ANSWER_WITHIN)
            // What is told goes where the settings say, and nowhere else.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
            .map_err(WebhookError::Client)?;
        Ok(Self { http, url, mac })
    }

    /// Makes the call. Any 2xx means that it was heard.
    pub(crate) async fn tell(&self, id: &str, body: String, now: Timestamp) -> Result<(), TellError> {
        let seconds = now.0.div_euclid(1_000).to_string();
        let signature = self.signature(&seconds, body.as_bytes());
        let call = self
            .http
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("jobyard-event", id)
            .header("jobyard-timestamp", seconds)
            .header("jobyard-signature", format!("v1={signature}"))
            .body(body);
        // The address may hold a secret of theirs.
        let answer = call.send().await.map_err(|error| TellError::Unreachable(error.without_url()))?;
        if answer.status().is_success() { Ok(()) } else { Err(TellError::Refused(answer.status())) }
    }

    /// HMAC-SHA256 over the timestamp, a dot and the body, in hex digits.
    fn signature(&self, seconds: &str, body: &[u8]) -> String {
        let mut mac = self.mac.clone();
        mac.update(seconds.as_bytes());
        mac.update(b".");
        mac.update(body);
        let bytes = mac.finalize().into_bytes();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_not_be_a_webhook_is_refused_with_the_reason() {
        let key = [7; 16];
        for (url, key, why) in [
            ("alerts.example", &key[..], "relative URL"),
            ("ftp://alerts.example", &key, "http://"),
            ("https://alerts.example", &key, "not available yet"),
            ("http://alerts.example/x", &key[..15], "at least 16 bytes"),
        ] {
            let error = Webhook::new(url, key).expect_err(url).to_string();
            assert!(error.contains(why), "{url}: {error}");
        }
    }

    #[test]
    fn a_signature_can_be_checked_with_other_tools() {
        let webhook = Webhook::new("http://alerts.example", b"0123456789abcdef").unwrap();
        // printf '1777627800.{}' | openssl dgst -sha256 -hmac 0123456789abcdef
        assert_eq!(
            webhook.signature("1777627800", b"{}"),
            "c8074097f4ac854ee53e9ad516498e75fc4484325a8324408b632a785af22a19"
        );
        assert!(!format!("{webhook:?}").contains("0123"));
    }
}
