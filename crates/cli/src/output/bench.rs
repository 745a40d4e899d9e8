//! What `bench` measured, for people and programs.

use std::fmt::Write as _;

use rustix::system::{sysinfo, uname};
use serde::Serialize;

use super::jobs::memory;
use super::table::{self, Column, Value};
use super::{Output, Style, escape};

/// A whole run.
#[derive(Debug, Serialize)]
pub(crate) struct BenchReport {
    /// Which one.
    pub(crate) benchmark: &'static str,
    /// Its jobs are labelled `bench` with this.
    pub(crate) run: String,
    /// Where the command ran.
    pub(crate) machine: Machine,
    /// What was measured.
    pub(crate) server: BenchServer,
    #[serde(flatten)]
    pub(crate) measured: Measured,
}

/// What came out.
#[derive(Debug, Serialize)]
pub(crate) struct Measured {
    /// What the machine does without Jobyard.
    pub(crate) baselines: Vec<Baseline>,
    /// What it does with Jobyard.
    pub(crate) figures: Vec<Figure>,
    /// The one to the other.
    pub(crate) ratios: Vec<Ratio>,
}

/// The machine that a command runs on.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    cores: usize,
    memory_bytes: u64,
    kernel: String,
    architecture: &'static str,
    /// Of the command.
    version: &'static str,
}

impl Machine {
    /// This one.
    pub(crate) fn of_this() -> Self {
        let (system, name) = (sysinfo(), uname());
        let word = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: u64::from(system.mem_unit).saturating_mul(system.totalram),
            kernel: format!("{} {}", word(name.sysname()), word(name.release())),
            architecture: std::env::consts::ARCH,
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// An installation, as its server tells.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct BenchServer {
    pub(crate) url: String,
    pub(crate) version: String,
    /// `postgres` or `sqlite`.
    pub(crate) datastore: String,
    /// Nodes of the pool that took jobs when the run began.
    pub(crate) nodes: usize,
    /// What they offered together.
    pub(crate) node_cores: f64,
}

/// A raw rate, taken before and after the measured part.
#[derive(Debug, Serialize)]
pub(crate) struct Baseline {
    pub(crate) name: &'static str,
    pub(crate) what: String,
    #[serde(rename = "before_per_second")]
    pub(crate) before: f64,
    #[serde(rename = "after_per_second")]
    pub(crate) after: f64,
}

impl Baseline {
    /// What ratios are to.
    pub(crate) fn mean(&self) -> f64 {
        f64::midpoint(self.before, self.after)
    }
}

/// Something measured.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    name: &'static str,
    what: String,
    #[serde(flatten)]
    value: Measure,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Measure {
    Rate { count: u64, seconds: f64, per_second: f64 },
    Times(Times),
}

impl Figure {
    /// So many in such a time.
    pub(crate) fn rate(name: &'static str, what: impl Into<String>, rate: Rate) -> Self {
        let Rate { count, seconds } = rate;
        let value = Measure::Rate { count, seconds, per_second: rate.per_second() };
        Self { name, what: what.into(), value }
    }

    /// How long it took each time.
    pub(crate) fn times(name: &'static str, what: impl Into<String>, times: Times) -> Self {
        Self { name, what: what.into(), value: Measure::Times(times) }
    }
}

/// So many in such a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) count: u64,
    pub(crate) seconds: f64,
}

impl Rate {
    pub(crate) fn per_second(self) -> f64 {
        if self.seconds > 0.0 { self.count as f64 / self.seconds } else { 0.0 }
    }
}

/// Shares of many durations, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Times {
    count: usize,
    pub(crate) p50_ms: f64,
    p90_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

impl Times {
    /// By nearest rank; zeros of nothing.
    pub(crate) fn of(mut milliseconds: Vec<f64>) -> Self {
        milliseconds.sort_by(f64::total_cmp);
        let count = milliseconds.len();
        let at = |percent: usize| {
            let rank = (count * percent).div_ceil(100).max(1);
            milliseconds.get(rank - 1).copied().unwrap_or(0.0)
        };
        Self { count, p50_ms: at(50), p90_ms: at(90), p99_ms: at(99), max_ms: at(100) }
    }
}

/// One measured thing to another.
#[derive(Debug, Serialize)]
pub(crate) struct Ratio {
    name: &'static str,
    what: &'static str,
    value: f64,
}

impl Ratio {
    /// See its fields.
    pub(crate) fn new(name: &'static str, what: &'static str, value: f64) -> Self {
        Self { name, what, value }
    }
}

impl Output for BenchReport {
    fn table(&self, style: &Style) -> String {
        let Self { benchmark, run, machine, server, measured } = self;
        let mut text = String::new();
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "{benchmark} of {}: jobyard {} on {}, nodes: {} with {} cores\n\
             this machine: jobyard {}, {}, {}, {} cores, {}\njobs are labelled bench={run}\n",
            escape(&server.url),
            escape(&server.version),
            escape(&server.datastore),
            server.nodes,
            server.node_cores,
            machine.version,
            machine.kernel,
            machine.architecture,
            machine.cores,
            memory(machine.memory_bytes)
        );
        text.push_str(&baselines(&measured.baselines, style));
        text.push('\n');
        text.push_str(&rates(&measured.figures, style));
        text.push_str(&times(&measured.figures, style));
        let ratio =
            |ratio: &Ratio| -> [Value; 2] { [ratio.what.into(), format!("{:.2}", ratio.value).into()] };
        let columns = [Column::Text("RATIO"), Column::Number("")];
        text.push_str(&table::rows(style, columns, measured.ratios.iter().map(ratio)));
        text
    }
}

fn baselines(baselines: &[Baseline], style: &Style) -> String {
    let columns = [Column::Text("RAW"), Column::Number("BEFORE"), Column::Number("AFTER")];
    let per_second = |rate: f64| format!("{rate:.0}/s");
    let row = |baseline: &Baseline| -> [Value; 3] {
        [baseline.what.clone().into(), per_second(baseline.before).into(), per_second(baseline.after).into()]
    };
    table::rows(style, columns, baselines.iter().map(row))
}

fn rates(figures: &[Figure], style: &Style) -> String {
    let row = |figure: &Figure| -> Option<[Value; 4]> {
        let Measure::Rate { count, seconds, per_second } = figure.value else { return None };
        let rate = format!("{per_second:.0}/s");
        Some([
            figure.what.clone().into(),
            count.to_string().into(),
            format!("{seconds:.2} s").into(),
            rate.into(),
        ])
    };
    let columns =
        [Column::Text("MEASURED"), Column::Number("COUNT"), Column::Number("TIME"), Column::Number("RATE")];
    part(style, columns, figures.iter().filter_map(row).collect())
}

fn times(figures: &[Figure], style: &Style) -> String {
    let row = |figure: &Figure| -> Option<[Value; 6]> {
        let Measure::Times(times) = &figure.value else { return None };
        let shown = |milliseconds: f64| Value::from(format!("{milliseconds:.2}"));
        Some([
            figure.what.clone().into(),
            times.count.to_string().into(),
            shown(times.p50_ms),
            shown(times.p90_ms),
            shown(times.p99_ms),
            shown(times.max_ms),
        ])
    };
    let columns = [
        Column::Text("MEASURED, IN MS"),
        Column::Number("COUNT"),
        Column::Number("P50"),
        Column::Number("P90"),
        Column::Number("P99"),
        Column::Number("MAX"),
    ];
    part(style, columns, figures.iter().filter_map(row).collect())
}

/// A table and a blank line, or nothing.
fn part<const N: usize>(style: &Style, columns: [Column; N], rows: Vec<[Value; N]>) -> String {
    if rows.is_empty() { String::new() } else { table::rows(style, columns, rows) + "\n" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_by_nearest_rank() {
        let hundred = Times::of((1..=100).rev().map(f64::from).collect());
        assert_eq!(
            (hundred.p50_ms, hundred.p90_ms, hundred.p99_ms, hundred.max_ms),
            (50.0, 90.0, 99.0, 100.0)
        );
        let one = Times::of(vec![7.0]);
        assert_eq!((one.p50_ms, one.p99_ms, one.max_ms), (7.0, 7.0, 7.0));
        let three = Times::of(vec![3.0, 1.0, 2.0]);
        assert_eq!((three.p50_ms, three.p90_ms), (2.0, 3.0));
        assert_eq!(Times::of(Vec::new()).max_ms, 0.0);
    }
}
