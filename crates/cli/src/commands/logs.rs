//! `logs`: what a job wrote, byte for byte, on our standard output.

use futures_util::TryStreamExt;
use jobyard_client::{Client, FollowOptions, LogQuery, LogStream};

use super::run::write;
use crate::arguments::LogsArguments;
use crate::error::CommandError;

pub(super) async fn run(client: &Client, arguments: &LogsArguments) -> Result<u8, CommandError> {
    let stream = match (arguments.stdout, arguments.stderr) {
        (true, _) => Some(LogStream::Stdout),
        (_, true) => Some(LogStream::Stderr),
        (false, false) => None,
    };
    let attempt = arguments.attempt;
    let mut stdout = tokio::io::stdout();
    // Nothing more comes of a job that is over; then its log can be had in the order it was written.
    if arguments.follow && !client.jobs().get(arguments.id).await?.status.is_end() {
        let mut log = client.jobs().follow(arguments.id, FollowOptions { attempt, stream });
        while let Some(piece) = log.try_next().await? {
            write(&mut stdout, &piece.bytes).await?;
        }
    } else {
        let query =
            LogQuery { attempt, stream, tail: arguments.tail, since: arguments.since, ..LogQuery::default() };
        let mut log = client.jobs().logs(arguments.id, &query).await?;
        while let Some(bytes) = log.try_next().await? {
            write(&mut stdout, &bytes).await?;
        }
    }
    Ok(0)
}
