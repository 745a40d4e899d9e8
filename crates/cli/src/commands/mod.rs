//! What people type, a file a command or a noun. Each goes through the client library and gives an exit code.

mod artifact;
pub(crate) mod bench;
mod completion;
mod control;
mod dashboard;
mod logs;
mod node;
mod ps;
mod read;
mod run;
mod submit;
mod token;
mod wait;

use jobyard_client::Error as ClientError;

use crate::arguments::UserCommand;
use crate::error::CommandError;
use crate::output::{self, Format};
use crate::{connect, doctor, exit};

/// Carries out a command; gives the exit code it ends with.
pub(crate) fn run(command: UserCommand) -> Result<u8, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| CommandError::Setup { doing: "start the runtime", source })?;
    let code = runtime.block_on(dispatch(command));
    // A write to a pipe that nobody reads must not keep us.
    runtime.shutdown_background();
    code
}

async fn dispatch(command: UserCommand) -> Result<u8, CommandError> {
    let client = || connect::client();
    match command {
        UserCommand::Submit(arguments) => submit::run(&client()?, &arguments).await,
        UserCommand::Run(arguments) => run::run(&client()?, &arguments).await,
        UserCommand::Ps(arguments) => ps::run(&client()?, arguments).await,
        UserCommand::Get(arguments) => read::get(&client()?, &arguments).await,
        UserCommand::Attempts(arguments) => read::attempts(&client()?, &arguments).await,
        UserCommand::Events(arguments) => read::events(&client()?, &arguments).await,
        UserCommand::Why(arguments) => read::why(&client()?, &arguments).await,
        UserCommand::Logs(arguments) => logs::run(&client()?, &arguments).await,
        UserCommand::Wait(arguments) => wait::run(&client()?, &arguments).await,
        UserCommand::Stop(arguments) => control::stop(&client()?, &arguments).await,
        UserCommand::Cancel(arguments) => control::cancel(&client()?, &arguments).await,
        UserCommand::Retry(arguments) => control::retry(&client()?, &arguments).await,
        UserCommand::Node(command) => node::run(&client()?, command).await,
        UserCommand::Artifact(command) => artifact::run(&client()?, command).await,
        UserCommand::Token(command) => token::run(command).await,
        UserCommand::Dashboard => dashboard::run(&client()?).await,
        UserCommand::Bench(command) => bench::run(&client()?, &command).await,
        UserCommand::Doctor(arguments) => doctor::run(&arguments).await,
        UserCommand::Completion { shell } => completion::run(shell),
        UserCommand::ExitCodes => {
            output::print(format!("{}\n", exit::TOPIC).as_bytes())?;
            Ok(0)
        }
    }
}

/// Several of one kind, one after the other: one that is refused is told and doesn't keep the others from their turn;
/// a server that isn't there ends it.
struct Each {
    format: Format,
    refused: bool,
}

impl Each {
    fn new(format: Format) -> Self {
        Self { format, refused: false }
    }

    /// The answer, or `None` for a refusal that was told.
    fn take<T>(&mut self, answer: Result<T, ClientError>) -> Result<Option<T>, CommandError> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error @ ClientError::Problem(_)) => {
                output::complain(&CommandError::from(error).show(self.format));
                self.refused = true;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn exit_code(&self) -> u8 {
        if self.refused { exit::FAILED } else { 0 }
    }
}
