//! Logs: structured, one line an event, to stderr.
//!
//! A program flattens [`LogArgs`] into its command line and calls [`LogArgs::init`] once. What is logged is up to
//! the program; metrics are in its registry, which the admin server shows.

mod filter;
mod one_line;

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use tracing::{
    Subscriber,
    subscriber::{SetGlobalDefaultError, set_global_default},
};
use tracing_subscriber::{Layer as _, fmt, layer::SubscriberExt as _, registry};

pub use self::filter::{Filter, FilterError};
use self::one_line::OneLine;

/// Why nothing can be logged.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The process logs already.
    #[error("cannot set up logging: {0}; it is set up once in a process, at its start")]
    AlreadySet(#[from] SetGlobalDefaultError),
}

/// The options of every program that say how it logs.
#[derive(Debug, Clone, Args)]
pub struct LogArgs {
    /// How log lines look.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Json)]
    pub log_format: LogFormat,
    /// What is logged: LEVEL or TARGET=LEVEL, several with commas, as in info,hyper=debug. Levels are off, error, warn,
    /// info, debug and trace; what no TARGET matches is logged from the level that stands alone, or from info.
    #[arg(long, value_name = "FILTER", default_value = "info")]
    pub log_level: Filter,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// A JSON object on every line, with timestamp, level, target, message and the event's fields.
    Json,
    /// For reading: time, level, target, message, name=value.
    Text,
}

impl LogArgs {
    /// Sets up logging for the whole process.
    pub fn init(&self) -> Result<(), TelemetryError> {
        Ok(set_global_default(subscriber(self, io::stderr))?)
    }
}

fn subscriber<W, O>(args: &LogArgs, output: O) -> impl Subscriber + Send + Sync + use<W, O>
where
    W: Write,
    O: Fn() -> W + Send + Sync + 'static,
{
    let lines = fmt::layer().with_ansi(false).with_writer(move || OneLine(output()));
    let lines = match args.log_format {
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).boxed(),
        LogFormat::Text => lines.boxed(),
    };
    registry().with(lines).with(args.log_level.targets())
}

#[cfg(test)]
mod tests;
