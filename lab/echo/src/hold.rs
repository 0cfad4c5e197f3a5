//! The long-lived client: one connection, a line echoed at a steady pace, until a signal ends the
//! program or the connection breaks.
//!
//! `main` calls it with the arguments that `cli` has parsed.

use std::{
    io::Write as _,
    net::IpAddr,
    process::ExitCode,
    time::{Duration, Instant},
};

use serde::Serialize;
use serde_json::Value;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::{
    ask::{Answered, Conversation, Failure, Target, milliseconds},
    signals::Signals,
};

/// Output failed, although the connection may be fine.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to stdout: {0}; keep its reader running until this program ends")]
pub(crate) struct Error(#[from] std::io::Error);

/// The destination and the pace.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) target: Target,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
    pub(crate) bind: Option<IpAddr>,
}

/// The summary of the connection.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    exchanged: u64,
    slowest_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Holds the connection. A failure is printed and ends it.
pub(crate) async fn run(held: &Held, signals: &mut Signals) -> Result<ExitCode, Error> {
    let mut summary = Summary::default();
    let code = match talk(held, signals, &mut summary).await {
        // A signal before the first exchange proves nothing, so it counts as a failure.
        Ok(()) if summary.exchanged > 0 => ExitCode::SUCCESS,
        Ok(()) => ExitCode::FAILURE,
        Err(Broken::Output(error)) => return Err(error),
        Err(Broken::Connection(failure)) => {
            summary.error = Some(failure.to_string());
            print(failure.into_line())?;
            ExitCode::FAILURE
        }
    };
    eprintln!("{}", serde_json::json!(summary));
    Ok(code)
}

/// Why a connection ended without a signal.
enum Broken {
    Connection(Failure),
    Output(Error),
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Self {
        Self::Connection(failure)
    }
}

/// Exchanges lines until a signal arrives or something breaks. A line that has been sent must be
/// echoed even then: the connection may be broken already.
async fn talk(held: &Held, signals: &mut Signals, summary: &mut Summary) -> Result<(), Broken> {
    let open = async {
        let address = held.target.look_up(held.bind).await?;
        Conversation::open(address, held.bind).await
    };
    let (mut conversation, greeting) = tokio::select! {
        opened = timeout(held.timeout, open) => opened.unwrap_or(Err(Failure::TimedOut))?,
        () = signals.end() => return Ok(()),
    };
    print(greeting).map_err(Broken::Output)?;
    let mut pace = interval(held.interval);
    // Lines that a slow answer delayed are not made up for.
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = pace.tick() => {}
            () = signals.end() => return Ok(()),
        }
        let started = Instant::now();
        let line = format!("hold {}\n", summary.exchanged + 1);
        let exchange = conversation.exchange(&line);
        timeout(held.timeout, exchange).await.unwrap_or(Err(Failure::TimedOut))?;
        summary.exchanged += 1;
        summary.slowest_ms = summary.slowest_ms.max(milliseconds(started.elapsed()));
    }
}

fn print(line: Answered) -> Result<(), Error> {
    Ok(writeln!(std::io::stdout(), "{}", Value::Object(line))?)
}
