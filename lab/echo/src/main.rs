//! `echo`: the application that the lab's scenarios talk to, the client that asks it, and the lab's pause program.
//!
//! `serve` tells every caller which address it came from, `ask` makes real connections and prints what came back,
//! `hold` keeps one open, `pause` only waits. It knows nothing of Kubernetes beyond four environment variables that the
//! downward API fills in.

mod answer;
mod ask;
mod cli;
mod hold;
mod serve;
mod signals;

use std::process::ExitCode;

use clap::Parser;

use crate::{
    answer::Place,
    cli::{Cli, Command},
    signals::Signals,
};

/// What ends the program with an error rather than with an unanswered question.
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

fn main() -> ExitCode {
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
            Command::Hold(held) => return Ok(hold::run(&held.into(), &mut signals).await?),
            Command::Pause => signals.end().await,
        }
        Ok(ExitCode::SUCCESS)
    });
    // A name that is still being looked up must not hold up the end.
    runtime.shutdown_background();
    ended
}
