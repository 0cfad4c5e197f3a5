//! Logging: structured, one line per event, to stderr.
//!
//! A program flattens [`LogArgs`] into its command line and calls [`LogArgs::init`] once. Metrics
//! are separate: the admin server serves them from the program's registry.

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

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// Logging is already set up in this process.
    #[error("cannot set up logging: {0}; a process sets it up once, at its start")]
    AlreadySet(#[from] SetGlobalDefaultError),
}

/// Logging options, shared by all programs.
#[derive(Debug, Clone, Args)]
pub struct LogArgs {
    /// The format of log lines.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Json)]
    pub log_format: LogFormat,
    /// Log filter: LEVEL or TARGET=LEVEL, separated by commas, as in info,hyper=debug. Levels are
    /// off, error, warn, info, debug and trace. A LEVEL without a target applies to all other
    /// targets and defaults to info.
    #[arg(long, value_name = "FILTER", default_value = "info")]
    pub log_level: Filter,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object per line, with timestamp, level, target, message and the event's fields.
    Json,
    /// Human-readable: time, level, target, message, name=value.
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
