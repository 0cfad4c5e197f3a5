//! `kubectl isp`: checks a cluster before anything is installed, shows the state of
//! IngressSourcePreserves, plans changes, explains nodes and pods, finds faults, traces packets,
//! probes Services, and writes a page that shows the paths. It only reads, except that `rules` and
//! `probe` run short-lived pods.
//!
//! | module | knows |
//! |---|---|
//! | `cli` | the command line |
//! | `connection`, `error` | the connection to the API server, and the errors of commands |
//! | `read`, `dump` | lists of a cluster, page by page; files of a dump |
//! | `check`, `status`, `plan`, `explain_node`, `doctor`, `report`, `rules`, `probe`, `trace` | one command each: reading, and pure functions |
//! | `helper` | short-lived pods of `rules` and `probe` |
//! | `complete` | the answers to kubectl's completion |
//! | `progress` | a line on standard error while a command takes long |
//! | `schema` | the JSON Schemas of the output for scripts |
//! | `text` | layout: blocks, wrapped lines, ages |
//! | `sarif` | findings in the format of code scanners |
//! | `output` | standard output: colours, width, symbols, JSON and YAML, closed pipes |

mod check;
mod cli;
pub mod complete;
mod connection;
mod doctor;
mod dump;
mod error;
mod explain_node;
mod helper;
mod output;
mod outside;
mod plan;
mod probe;
pub mod progress;
mod read;
mod report;
mod rules;
mod sarif;
pub mod schema;
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
    /// With `plan --exit-code`: applying the file would change something.
    Changes,
    /// Something is not `Ready` or would not become `Ready`, or there is a fault.
    NotReady,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Fine => Self::SUCCESS,
            Outcome::NotReady => Self::from(2),
            Outcome::Changes => Self::from(3),
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
        Command::Check(arguments) => check::run(place, arguments).await,
        Command::Status(arguments) => status::run(&Connection::open(place).await?, arguments).await,
        // The file is read first: a mistake in it is reported without a cluster.
        Command::Plan(arguments) => {
            let wanted = plan::file::read(&arguments.file)?;
            plan::run(place, arguments, wanted).await
        }
        Command::ExplainNode(arguments) => {
            explain_node::run(&Connection::open(place).await?, arguments).await
        }
        Command::Doctor(arguments) => doctor::run(place, arguments).await,
        Command::Report(arguments) => report::run(place, arguments).await,
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
