//! A program outside Jobyard: reads the logs of all jobs with a label and adds up the number each begins with.
//!
//! `cargo run --example sum_logs -- set=docs` prints the total and how many jobs it came from.
#![expect(clippy::print_stdout, reason = "an example that answers on standard output")]

use std::error::Error;

use futures_util::TryStreamExt;
use jobyard_client::{Client, JobFilter, LogQuery, LogStream, Status};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let label = std::env::args().nth(1).ok_or("usage: sum_logs KEY=VALUE")?;
    let (key, value) = label.split_once('=').ok_or("a label is KEY=VALUE")?;
    let client = Client::from_env()?;
    let filter = JobFilter { labels: vec![(key.to_owned(), value.to_owned())], ..JobFilter::default() };
    let mut jobs = client.jobs().list_all(filter);
    let (mut total, mut count) = (0_u64, 0_u32);
    while let Some(job) = jobs.try_next().await? {
        if job.status != Status::Success {
            return Err(format!("job {} is {}, not success", job.id, job.status).into());
        }
        let query = LogQuery { stream: Some(LogStream::Stdout), ..LogQuery::default() };
        let log: Vec<u8> =
            client.jobs().logs(job.id, &query).await?.map_ok(|piece| piece.to_vec()).try_concat().await?;
        let text = String::from_utf8(log)?;
        let number = text.split_whitespace().next().ok_or_else(|| format!("job {} said nothing", job.id))?;
        total += number.parse::<u64>()?;
        count += 1;
    }
    println!("{total} words in {count} files");
    Ok(())
}
