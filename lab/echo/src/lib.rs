//! The application of the lab's scenarios, its client, and the lab's pause program.
//!
//! `serve` tells every caller which address it came from, `ask` sends requests and prints the
//! answers, `survey` asks several servers, `hold` keeps one connection open, `pause` only waits. It
//! knows nothing of Kubernetes except four environment variables from the downward API.
//!
//! The program has two names: `echo` on the lab, and `probe` in the image of `kubectl isp probe`.

mod answer;
mod ask;
mod cli;
mod hold;
mod serve;
mod signals;
mod survey;

use std::process::ExitCode;

use clap::Parser;

use crate::{
    answer::Place,
    cli::{Cli, Command},
    signals::Signals,
};

/// Errors of the program itself, as opposed to failed requests.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("cannot start the async runtime: {0}; check the limits on threads and open files (ulimit -a)")]
    Runtime(#[source] std::io::Error),
    #[error(transparent)]
    Signals(#[from] signals::Error),
    #[error(transparent)]
    Serve(#[from] serve::Error),
    #[error(transparent)]
    Ask(#[from] ask::Error),
    #[error(transparent)]
    Hold(#[from] hold::Error),
}

/// Runs the program.
pub fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<ExitCode, Error> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
    let ended = runtime.block_on(async {
        let mut signals = Signals::install()?;
        match cli.command {
            Command::Serve(options) => serve::run(&options, Place::from_env(), &mut signals).await?,
            Command::Ask(question) => return Ok(ask::run(question.into(), &mut signals).await?),
            Command::Survey(options) => {
                tokio::select! {
                    ended = survey::run(options.into()) => ended?,
                    () = signals.end() => return Ok(ExitCode::FAILURE),
                }
            }
            Command::Hold(held) => return Ok(hold::run(&held.into(), &mut signals).await?),
            Command::Pause => signals.end().await,
        }
        Ok(ExitCode::SUCCESS)
    });
    // Does not wait for a pending name lookup.
    runtime.shutdown_background();
    ended
}
