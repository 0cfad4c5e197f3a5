//! Real connections: each client asks all its destinations at once, each several times.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures_util::future::join_all;
use isp_lab::{Lab, echo_program};
use serde::Deserialize;

use crate::cases::{Case, Source};

/// How often and how patiently a destination is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    pub(crate) answers: u32,
    /// After this time, an answer counts as lost.
    pub(crate) timeout: Duration,
    /// The time for all requests.
    pub(crate) patience: Duration,
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    Answered {
        /// The endpoint.
        by: SocketAddr,
        pod: String,
        /// The source that the pod saw.
        source: IpAddr,
    },
    Refused,
    TimedOut,
    /// A router said so.
    Unreachable,
    /// The rules of the client's own node stopped a datagram, and the kernel told the sender.
    NotPermitted,
    Other(String),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered { by, pod, source } => write!(f, "{pod} ({by}) saw {source}"),
            Self::Refused => f.write_str("refused"),
            Self::TimedOut => f.write_str("timed out"),
            Self::Unreachable => f.write_str("unreachable"),
            Self::NotPermitted => f.write_str("not permitted"),
            Self::Other(error) => f.write_str(error),
        }
    }
}

/// All ends of a case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observed {
    pub(crate) ends: BTreeSet<End>,
    /// The address that the client sent from.
    pub(crate) own: Option<IpAddr>,
    pub(crate) connections: usize,
}

/// A line of `echo survey`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    question: usize,
    own: Option<IpAddr>,
    local: Option<SocketAddr>,
    #[serde(default)]
    pod: String,
    peer_ip: Option<IpAddr>,
    error: Option<String>,
    #[serde(default)]
    detail: String,
}

impl Line {
    fn end(&self) -> End {
        match (self.error.as_deref(), self.local, self.peer_ip) {
            (None, Some(by), Some(source)) => End::Answered { by, pod: self.pod.clone(), source },
            (Some("refused"), ..) => End::Refused,
            (Some("timed out"), ..) => End::TimedOut,
            (Some("unreachable"), ..) => End::Unreachable,
            (Some("failed"), ..) if self.detail.contains("Operation not permitted") => End::NotPermitted,
            _ => End::Other(format!("{self:?}")),
        }
    }
}

/// Connects, and returns the ends in the order of the cases.
pub(crate) async fn connect(lab: &Lab, cases: &[&Case], effort: Effort) -> Vec<Observed> {
    let mut of_sources: BTreeMap<Source, Vec<usize>> = BTreeMap::new();
    for (place, case) in cases.iter().enumerate() {
        of_sources.entry(case.source).or_default().push(place);
    }
    let asked = of_sources.iter().map(async |(source, places)| {
        let urls: Vec<String> = places.iter().map(|place| cases[*place].url()).collect();
        (places, survey(lab, *source, &urls, effort).await)
    });
    let mut observed = vec![Observed::default(); cases.len()];
    for (places, lines) in join_all(asked).await {
        for line in lines {
            let case = &mut observed[places[line.question]];
            case.ends.insert(line.end());
            case.own = line.own.or(case.own);
            case.connections += 1;
        }
    }
    observed
}

async fn survey(lab: &Lab, source: Source, urls: &[String], effort: Effort) -> Vec<Line> {
    let mut command = vec![echo_program().unwrap().display().to_string(), "survey".to_owned()];
    command.extend([format!("--answers={}", effort.answers), "--interval=20".to_owned()]);
    command.push(format!("--timeout={}", effort.timeout.as_millis()));
    command.push(format!("--patience={}", effort.patience.as_millis()));
    command.extend_from_slice(urls);
    let output = lab.exec(&source.place(), &command).await.unwrap();
    assert!(output.success, "{source:?}: {}", output.stderr);
    output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
