//! The client of `kubectl isp probe`: asks several servers at once, each until it has answered
//! often enough or the time is up, and prints one line per request.
//!
//! `main` calls it with the arguments that `cli` has parsed. A rule that a node does not have yet
//! looks like one that it will never have, so silence is believed only after some time.

use std::{
    io::Write as _,
    net::{IpAddr, SocketAddr},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use hyper::http::uri::PathAndQuery;
use serde_json::Value;
use tokio::{
    net::UdpSocket,
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::ask::{self, Protocol, Question, Target};

#[cfg(test)]
mod tests;

/// How to ask.
#[derive(Debug, Clone)]
pub(crate) struct Survey {
    pub(crate) destinations: Vec<Destination>,
    /// A destination that has answered so often is done.
    pub(crate) answers: u64,
    /// A destination that has not answered for so long is done, too.
    pub(crate) patience: Duration,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
}

/// A server to ask, and how: `tcp://10.0.0.1:80`.
#[derive(Debug, Clone)]
pub(crate) struct Destination {
    protocol: Protocol,
    target: Target,
}

#[derive(Debug, thiserror::Error)]
#[error("'{0}' is not tcp://HOST:PORT, udp://HOST:PORT, connect://HOST:PORT or http://HOST:PORT/PATH")]
pub(crate) struct NotADestination(String);

impl FromStr for Destination {
    type Err = NotADestination;

    fn from_str(text: &str) -> Result<Self, NotADestination> {
        let wrong = || NotADestination(text.to_owned());
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let (address, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let protocol = match (scheme, path) {
            ("tcp", "") => Protocol::Tcp,
            ("udp", "") => Protocol::Udp,
            ("connect", "") => Protocol::Connect,
            ("http", path) => {
                let path: PathAndQuery =
                    if path.is_empty() { "/" } else { path }.parse().map_err(|_| wrong())?;
                Protocol::Http { path, host_header: None }
            }
            _ => return Err(wrong()),
        };
        Ok(Self { protocol, target: address.parse().map_err(|_| wrong())? })
    }
}

/// Asks all destinations. A destination that does not answer is a result, not an error.
pub(crate) async fn run(survey: Survey) -> Result<(), ask::Error> {
    let survey = Arc::new(survey);
    let mut all = JoinSet::new();
    for index in 0..survey.destinations.len() {
        all.spawn(one(Arc::clone(&survey), index));
    }
    while let Some(done) = all.join_next().await {
        if let Ok(result) = done {
            result?;
        }
    }
    Ok(())
}

async fn one(survey: Arc<Survey>, index: usize) -> Result<(), ask::Error> {
    let Destination { protocol, target } = &survey.destinations[index];
    let question = Question {
        protocol: protocol.clone(),
        target: target.clone(),
        count: 0,
        interval: survey.interval,
        timeout: survey.timeout,
        bind: None,
    };
    let deadline = Instant::now() + survey.patience;
    let (mut seq, mut answered) = (0, 0);
    loop {
        seq += 1;
        let outcome = ask::ask(question.clone(), seq).await;
        let mut line = match outcome.result {
            Ok(line) => {
                answered += 1;
                line
            }
            // The server has answered, if not as asked.
            Err(failure @ ask::Failure::Status { .. }) => {
                answered += 1;
                failure.into_line()
            }
            Err(failure) => failure.into_line(),
        };
        line.insert("question".to_owned(), index.into());
        line.insert("seq".to_owned(), seq.into());
        if let Some(own) = own_address(target).await {
            line.insert("own".to_owned(), own.to_string().into());
        }
        writeln!(std::io::stdout(), "{}", Value::Object(line)).map_err(ask::Error::Output)?;
        if answered >= survey.answers || Instant::now() >= deadline {
            return Ok(());
        }
        sleep(survey.interval).await;
    }
}

/// The address that this host sends from. Connecting a UDP socket sends nothing.
async fn own_address(target: &Target) -> Option<IpAddr> {
    let to = target.look_up(None).await.ok()?;
    let any: SocketAddr = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }.parse().ok()?;
    let socket = UdpSocket::bind(any).await.ok()?;
    socket.connect(to).await.ok()?;
    socket.local_addr().ok().map(|local| local.ip())
}
