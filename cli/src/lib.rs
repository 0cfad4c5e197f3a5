//! `kubectl isp`: how an IngressSourcePreserve stands, what it would change, what a node sees, what is wrong. It writes nothing.
//!
//! | module | knows |
//! |---|---|
//! | `cli` | the command line |
//! | `connection`, `error` | the way to the API server, and how to say what went wrong on it |
//! | `read` | lists, a page at a time |
//! | `status`, `plan`, `explain_node`, `doctor` | one command each: a rim that reads, and a pure function that says |
//! | `output` | standard output: colours on a terminal only, and an end when nobody reads |

mod cli;
mod connection;
mod doctor;
mod error;
mod explain_node;
mod output;
mod plan;
mod read;
mod status;
mod text;

use std::process::ExitCode;

use clap::CommandFactory;

pub use self::cli::Cli;
use self::cli::Command;
use self::connection::Connection;
pub use self::error::CommandError;

/// How it stands with what was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All is well.
    Fine,
    /// Something is not `Ready`, or would not become it; or something is wrong.
    NotReady,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Fine => Self::SUCCESS,
            Outcome::NotReady => Self::from(2),
        }
    }
}

impl Outcome {
    fn of(fine: bool) -> Self {
        if fine { Self::Fine } else { Self::NotReady }
    }
}

/// Does what the command line says.
pub async fn run(cli: Cli) -> Result<Outcome, CommandError> {
    let place = &cli.place;
    match &cli.command {
        Command::Status(arguments) => status::run(&Connection::open(place).await?, arguments).await,
        // The file is looked at first: what is wrong with it needs no cluster to be said.
        Command::Plan(arguments) => {
            let wanted = plan::file::read(&arguments.file)?;
            plan::run(&Connection::open(place).await?, arguments, wanted).await
        }
        Command::ExplainNode(arguments) => {
            explain_node::run(&Connection::open(place).await?, arguments).await
        }
        Command::Doctor(arguments) => doctor::run(place, arguments).await,
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "kubectl-isp", &mut script);
            output::print(&String::from_utf8_lossy(&script))?;
            Ok(Outcome::Fine)
        }
    }
}
