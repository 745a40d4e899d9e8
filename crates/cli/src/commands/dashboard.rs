//! `dashboard`: a way in for a browser.

use jobyard_client::Client;

use crate::error::CommandError;
use crate::output;

pub(super) async fn run(client: &Client) -> Result<u8, CommandError> {
    let made = client.tokens().login().await?;
    // Browsers keep what follows the # to themselves.
    output::print(format!("{}/login#{}\n", client.url(), made.login).as_bytes())?;
    output::remark("this link works once, for 15 minutes");
    Ok(0)
}
