//! What the queue bears with nothing run: claim and finish with all rows and planning, as the informer's loop and a busy
//! node's reports do it, beside the bare statements of the same run.
//!
//! ```text
//! cargo run --release -p jobyard-informer --example queue -- sqlite
//! cargo run --release -p jobyard-informer --example queue -- postgres held 600
//! ```
//!
//! `sqlite` and `postgres` measure with at most 1,000 jobs waiting and then with 1,000,000 (or as many as are given);
//! `calls` says how long each call of a lone job's life takes;
//! `held SECONDS` at full speed, then at half of it while somebody holds a snapshot, then at full speed with the snapshot
//! still held; `free SECONDS` does the same while nobody holds one. No test asserts what this prints.
#![expect(clippy::print_stdout, reason = "prints figures")]
#![expect(clippy::unwrap_used, reason = "a figure that can't be taken is no figure")]
#![expect(clippy::disallowed_methods, reason = "stands in for the doors: it has a clock and makes ids")]

mod place;
mod raw;

use std::time::{Duration, Instant};

use place::Place;
use raw::Raw;

/// Jobs of one measurement.
const MEASURED: usize = 20_000;
/// Jobs that wait in the small case.
const FEW: usize = 1_000;
const MANY: usize = 1_000_000;

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [datastore @ ("sqlite" | "postgres"), how @ ("held" | "free"), seconds] => {
            held(datastore, *how == "held", Duration::from_secs(seconds.parse().unwrap())).await;
        }
        [datastore @ ("sqlite" | "postgres"), "calls"] => calls(datastore).await,
        [datastore @ ("sqlite" | "postgres"), many @ ..] => {
            let many = many.first().map_or(MANY, |many| many.parse().unwrap());
            backlog(datastore, many).await;
        }
        _ => println!(
            "usage: queue sqlite|postgres [WAITING] · queue sqlite|postgres held|free SECONDS · \
                       queue sqlite|postgres calls"
        ),
    }
}

/// One job at a time, with nothing else to do.
async fn calls(datastore: &str) {
    const JOBS: usize = 1_000;
    let place = Place::new(datastore).await;
    let mut taken: Vec<(&str, Vec<Duration>)> = Vec::new();
    for _ in 0..JOBS {
        for (place, (name, duration)) in place.one_life().await.into_iter().enumerate() {
            if taken.len() == place {
                taken.push((name, Vec::new()));
            }
            taken[place].1.push(duration);
        }
    }
    for (name, mut durations) in taken {
        durations.sort_unstable();
        let at = |share: usize| durations[durations.len() * share / 100].as_secs_f64() * 1_000.0;
        println!("{datastore}: {name}: p50 {:.2} ms, p99 {:.2} ms", at(50), at(99));
    }
    place.close().await;
}

async fn backlog(datastore: &str, many: usize) {
    let place = Place::new(datastore).await;
    let few = few_waiting(&place, MEASURED).await;
    println!("{datastore}: {few:.0} jobs/s claimed and finished with at most {FEW} waiting");
    let started = Instant::now();
    place.submit(many + 2 * MEASURED).await;
    println!("{datastore}: {many} jobs more submitted in {:.1} s", started.elapsed().as_secs_f64());
    let rate = full_speed(&place).await;
    println!("{datastore}: {rate:.0} jobs/s with {many} waiting, {:.2} times slower", few / rate);
    let mut raw = Raw::new(&place).await;
    let bare = raw.rate(MEASURED).await;
    println!("{datastore}: {bare:.0} jobs/s of bare statements, ratio {:.2}", rate / bare);
    place.close().await;
}

async fn held(datastore: &str, hold: bool, for_time: Duration) {
    let place = Place::new(datastore).await;
    let before = few_waiting(&place, MEASURED).await;
    let bare_before = bare(&place).await;
    println!("{datastore}: {before:.0} jobs/s before; {bare_before:.0} of bare statements");
    let snapshot = match hold {
        true => Some(Raw::new(&place).await.hold_snapshot().await),
        false => None,
    };
    let how = if hold { "with a snapshot held" } else { "with no snapshot held" };
    let started = Instant::now();
    let mut done = 0;
    while started.elapsed() < for_time {
        few_waiting(&place, FEW).await;
        done += FEW;
        let due = Duration::from_secs_f64(done as f64 / (before / 2.0));
        tokio::time::sleep(due.saturating_sub(started.elapsed())).await;
    }
    let half = done as f64 / started.elapsed().as_secs_f64();
    println!("{datastore}: {half:.0} jobs/s for {} s {how}", started.elapsed().as_secs());
    let after = few_waiting(&place, MEASURED).await;
    let bare_after = bare(&place).await;
    println!(
        "{datastore}: {after:.0} jobs/s {how}, ratio {:.2}; {bare_after:.0} of bare statements, ratio {:.2}",
        after / before,
        bare_after / bare_before
    );
    if let Some(snapshot) = snapshot {
        snapshot.let_go().await;
    }
    let afterwards = few_waiting(&place, MEASURED).await;
    println!("{datastore}: {afterwards:.0} jobs/s at the end, ratio {:.2}", afterwards / before);
    place.close().await;
}

/// Jobs a second by bare statements, as many as are submitted for it.
async fn bare(place: &Place) -> f64 {
    place.submit(MEASURED).await;
    Raw::new(place).await.rate(MEASURED).await
}

/// Jobs a second; what is submitted in between does not count.
async fn few_waiting(place: &Place, count: usize) -> f64 {
    let mut taken = Duration::ZERO;
    for _ in 0..count / FEW {
        place.submit(FEW).await;
        taken += place.drain(FEW).await;
    }
    count as f64 / taken.as_secs_f64()
}

async fn full_speed(place: &Place) -> f64 {
    MEASURED as f64 / place.drain(MEASURED).await.as_secs_f64()
}
