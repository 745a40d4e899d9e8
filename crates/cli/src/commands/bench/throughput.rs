//! From the first submit of many `/bin/true` to the last one's end.

use std::time::Instant;

use super::ThroughputArguments;
use super::baseline::Raw;
use super::run::Run;
use crate::error::CommandError;
use crate::output::{Figure, Measured, Rate, Ratio};

pub(super) async fn measure(
    run: &Run<'_>,
    arguments: &ThroughputArguments,
) -> Result<Measured, CommandError> {
    run.needs_a_node()?;
    let raw = Raw::process_starts_on_all_cores().take(run.client).await?;
    let count = arguments.jobs;
    let started = Instant::now();
    let submitted = run.submit_batches(&run.job(&["/bin/true"]), count, arguments.batch, 1).await?;
    run.until_over(count).await?;
    let ended = Rate { count, seconds: started.elapsed().as_secs_f64() };
    run.all_succeeded().await?;
    let raw = raw.again(run.client).await?;
    let ratio =
        Ratio::new("end_to_end", "jobs end to end to raw process starts", ended.per_second() / raw.mean());
    Ok(Measured {
        baselines: vec![raw],
        figures: vec![
            Figure::rate("submit", "jobs submitted in batches, while those before them run", submitted),
            Figure::rate("end_to_end", "jobs end to end", ended),
        ],
        ratios: vec![ratio],
    })
}
