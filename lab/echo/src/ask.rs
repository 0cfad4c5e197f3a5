//! The client: sends requests at a steady pace, each over a new connection, and prints the answers.
//!
//! `main` calls it with a `Question` that `cli` has parsed. `http`, `tcp` and `udp` each send one
//! request; this module does the pacing, timeouts, output and counting. Requests are sent by the
//! clock, whether or not earlier ones were answered, so an outage shows as failed requests.

mod failure;
mod http;
mod summary;
mod target;
mod tcp;
mod udp;

use std::{
    io::Write as _,
    net::IpAddr,
    process::ExitCode,
    time::{Duration, Instant},
};

use hyper::{header::HeaderValue, http::uri::PathAndQuery};
use serde_json::{Map, Value};
use tokio::{
    task::JoinSet,
    time::{interval, timeout},
};

use self::summary::Summary;
pub(crate) use self::{failure::Failure, target::Target, tcp::Conversation};
use crate::signals::Signals;

/// The limit of requests in flight, so that a silent server cannot exhaust this process's file
/// descriptors. At the limit, sending pauses and catches up later.
const MOST_IN_FLIGHT: usize = 512;

/// The largest accepted answer.
const LARGEST_ANSWER: usize = 1024 * 1024;

/// Why the client had to stop.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot write the answers to stdout: {0}; keep its reader running until this program ends")]
    Output(#[source] std::io::Error),
}

/// The requests to send.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) protocol: Protocol,
    pub(crate) target: Target,
    /// 0 means unlimited.
    pub(crate) count: u64,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
    pub(crate) bind: Option<IpAddr>,
}

#[derive(Debug, Clone)]
pub(crate) enum Protocol {
    Http {
        path: PathAndQuery,
        host_header: Option<HeaderValue>,
    },
    Tcp,
    Udp,
    /// A TCP connection that is closed again.
    Connect,
}

/// A server's answer, as the JSON object to print.
pub(crate) type Answered = Map<String, Value>;

/// The result of one request.
pub(crate) struct Outcome {
    seq: u64,
    elapsed: Duration,
    pub(crate) result: Result<Answered, Failure>,
}

/// Sends all requests, or until a signal; waits for requests in flight, and prints the summary.
pub(crate) async fn run(question: Question, signals: &mut Signals) -> Result<ExitCode, Error> {
    let mut summary = Summary::default();
    let mut in_flight = JoinSet::new();
    let mut pace = interval(question.interval);
    let mut asking = true;
    while asking || !in_flight.is_empty() {
        tokio::select! {
            () = signals.end(), if asking => asking = false,
            Some(outcome) = in_flight.join_next() => {
                if let Ok(outcome) = outcome {
                    report(outcome, &mut summary)?;
                }
            }
            _ = pace.tick(), if asking && in_flight.len() < MOST_IN_FLIGHT => {
                summary.sent += 1;
                in_flight.spawn(ask(question.clone(), summary.sent));
                asking = summary.sent != question.count;
            }
        }
    }
    eprintln!("{}", summary.line());
    Ok(if summary.all_answered() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Sends one request.
pub(crate) async fn ask(question: Question, seq: u64) -> Outcome {
    let started = Instant::now();
    let asked = async {
        let address = question.target.look_up(question.bind).await?;
        match &question.protocol {
            Protocol::Http { path, host_header } => {
                let host = host_header.clone().map_or_else(|| question.target.as_header(), Ok)?;
                http::ask(address, question.bind, path, host).await
            }
            Protocol::Tcp => tcp::ask(address, question.bind, seq).await,
            Protocol::Udp => udp::ask(address, question.bind, seq).await,
            Protocol::Connect => target::connect(address, question.bind).await.map(|_| Answered::new()),
        }
    };
    let result = timeout(question.timeout, asked).await.unwrap_or(Err(Failure::TimedOut));
    Outcome { seq, elapsed: started.elapsed(), result }
}

/// Prints the line of a request and counts it.
fn report(outcome: Outcome, summary: &mut Summary) -> Result<(), Error> {
    let mut line = match outcome.result {
        Ok(answered) => {
            summary.answered += 1;
            answered
        }
        Err(failure) => {
            summary.failed(&failure);
            failure.into_line()
        }
    };
    line.insert("seq".to_owned(), outcome.seq.into());
    line.insert("elapsedMs".to_owned(), milliseconds(outcome.elapsed).into());
    writeln!(std::io::stdout(), "{}", Value::Object(line)).map_err(Error::Output)
}

/// Milliseconds, rounded to three decimals.
pub(crate) fn milliseconds(elapsed: Duration) -> f64 {
    (elapsed.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

/// A server's line or body as the object to print. Anything but a JSON object is printed as text.
fn answered(bytes: &[u8]) -> Answered {
    serde_json::from_slice(bytes).unwrap_or_else(|_| {
        Map::from_iter([("body".to_owned(), String::from_utf8_lossy(bytes).trim_end().into())])
    })
}
