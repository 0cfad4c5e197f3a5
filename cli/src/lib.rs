//! `kubectl isp`: shows the state of IngressSourcePreserves, plans changes, explains nodes and
//! pods, finds faults, traces packets and probes Services. It only reads, except that `rules` and
//! `probe` run short-lived pods.
//!
//! | module | knows |
//! |---|---|
//! | `cli` | the command line |
//! | `connection`, `error` | the connection to the API server, and the errors of commands |
//! | `read` | lists, page by page |
//! | `status`, `plan`, `explain_node`, `doctor`, `rules`, `trace`, `probe` | one command each: reading, and pure functions |
//! | `helper` | short-lived pods of `rules` and `probe` |
//! | `text` | layout: blocks, wrapped lines, ages |
//! | `output` | standard output: colours, width, symbols, JSON and YAML, closed pipes |

mod cli;
mod connection;
mod doctor;
mod error;
mod explain_node;
mod helper;
mod output;
mod plan;
mod probe;
mod read;
mod rules;
mod status;
mod text;
mod trace;

use std::process::ExitCode;

use clap::CommandFactory;

pub use self::cli::Cli;
use self::cli::Command;
use self::connection::Connection;
pub use self::error::CommandError;

/// The result of a command that could answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No problem.
    Fine,
    /// Something is not `Ready` or would not become `Ready`, or there is a fault.
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

/// Runs the command.
pub async fn run(cli: Cli) -> Result<Outcome, CommandError> {
    let place = &cli.place;
    match &cli.command {
        Command::Status(arguments) => status::run(&Connection::open(place).await?, arguments).await,
        // The file is read first: a mistake in it is reported without a cluster.
        Command::Plan(arguments) => {
            let wanted = plan::file::read(&arguments.file)?;
            plan::run(&Connection::open(place).await?, arguments, wanted).await
        }
        Command::ExplainNode(arguments) => {
            explain_node::run(&Connection::open(place).await?, arguments).await
        }
        Command::Doctor(arguments) => doctor::run(place, arguments).await,
        Command::Rules(arguments) => rules::run(&Connection::open(place).await?, arguments).await,
        Command::Probe(arguments) => probe::run(place, arguments).await,
        Command::Trace(arguments) => trace::run(place, arguments).await,
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "kubectl-isp", &mut script);
            output::print(&String::from_utf8_lossy(&script))?;
            Ok(Outcome::Fine)
        }
    }
}
