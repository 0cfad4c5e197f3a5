//! The results of the clients' requests, and which failures are the operator's fault.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use super::TIMEOUT;

/// The kernel's timeout for resending a SYN. A request that took at least this long has lost a
/// packet.
const RESENT: Duration = Duration::from_secs(1);
/// Only a response that took this long without a Service can show that the machine lacks CPU time.
const LATE: Duration = Duration::from_millis(250);

/// The results of one client.
pub(super) struct Report {
    pub(super) name: String,
    /// Whether it sends requests directly to the pod, without a Service.
    is_control: bool,
    /// The time between two requests.
    interval: Duration,
    pub(super) sent: usize,
    slowest: Duration,
    /// The source IPs that the application saw, and how often.
    peers: BTreeMap<String, usize>,
    failures: Vec<Failure>,
    /// When slow requests were sent, and how long they took.
    late: Vec<(Duration, Duration)>,
}

/// A request without a response, or with one only after its packet was resent.
struct Failure {
    /// Since the start of the traffic.
    at: Duration,
    took: Duration,
    why: String,
    /// How long it took, if it was answered after all.
    resent: Option<Duration>,
}

/// A failure that is the operator's fault.
pub(super) struct Unexplained {
    pub(super) client: String,
    /// Since the start of the traffic.
    at: Duration,
    /// The time until the client's next request.
    interval: Duration,
    why: String,
    /// How long it took, if it was answered after all.
    pub(super) resent: Option<Duration>,
}

impl fmt::Display for Unexplained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:.2} s: {}", self.client, self.at.as_secs_f64(), self.why)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    seq: u32,
    elapsed_ms: f64,
    error: Option<String>,
    peer_ip: Option<String>,
}

impl Report {
    /// Parses the output of `echo ask`, which started at `began` and sent one request per interval.
    pub(super) fn read(
        name: String,
        is_control: bool,
        printed: &str,
        began: Duration,
        interval: Duration,
    ) -> Self {
        let (peers, failures, late) = (BTreeMap::new(), Vec::new(), Vec::new());
        let (sent, slowest) = (0, Duration::ZERO);
        let mut report = Self { name, is_control, interval, sent, slowest, peers, failures, late };
        for line in printed.lines() {
            let line: Line = serde_json::from_str(line).unwrap();
            report.take(line, began);
        }
        report
    }

    fn take(&mut self, line: Line, began: Duration) {
        let at = began + self.interval * (line.seq - 1);
        let elapsed = Duration::from_secs_f64(line.elapsed_ms / 1000.0);
        self.sent += 1;
        self.slowest = self.slowest.max(elapsed);
        if elapsed > LATE {
            self.late.push((at, elapsed));
        }
        let resent = (line.error.is_none() && elapsed > RESENT).then_some(elapsed);
        let why = resent.map(|elapsed| format!("answered after {} ms", elapsed.as_millis()));
        if let Some(why) = line.error.or(why) {
            self.failures.push(Failure { at, took: elapsed, why, resent });
        }
        if let Some(peer) = line.peer_ip {
            *self.peers.entry(peer).or_default() += 1;
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, sent, slowest, peers, failures, .. } = self;
        write!(f, "{name}: {sent} sent, {} failed, slowest {} ms", failures.len(), slowest.as_millis())?;
        let seen: Vec<_> = peers.iter().map(|(peer, count)| format!("{peer} {count}x")).collect();
        write!(f, ", seen as {}", seen.join(", "))
    }
}

/// The failures that delays of a control client explain, as text, and all others. A delay explains
/// a failure that is near it and took at most twice as long: a stalled machine holds up all clients
/// alike. A refused connection is never due to a delay.
pub(super) fn judge(reports: &[Report]) -> (Vec<String>, Vec<Unexplained>) {
    let (controls, clients): (Vec<_>, Vec<_>) = reports.iter().partition(|report| report.is_control);
    let is_starved = |failure: &Failure| {
        let mut late = controls.iter().flat_map(|control| &control.late);
        let only_late = failure.why == "timed out" || failure.resent.is_some();
        only_late && late.any(|(at, took)| at.abs_diff(failure.at) < TIMEOUT && failure.took <= *took * 2)
    };
    let (mut starved, mut unexplained) = (Vec::new(), Vec::new());
    for report in clients {
        for failure in &report.failures {
            let Failure { at, why, resent, .. } = failure;
            let (client, interval) = (report.name.clone(), report.interval);
            let failed = Unexplained { client, at: *at, interval, why: why.clone(), resent: *resent };
            if is_starved(failure) {
                starved.push(failed.to_string());
            } else {
                unexplained.push(failed);
            }
        }
    }
    (starved, unexplained)
}

/// For each client, the time from its first failed request to the request after the last failed
/// one.
pub(super) fn outages(failures: &[Unexplained]) -> Vec<(String, Duration)> {
    let mut spans: BTreeMap<&str, (Duration, Duration)> = BTreeMap::new();
    for failure in failures {
        let end = failure.at + failure.interval;
        let (first, last) = spans.entry(&failure.client).or_insert((failure.at, end));
        *first = (*first).min(failure.at);
        *last = (*last).max(end);
    }
    spans.into_iter().map(|(client, (first, last))| (client.to_owned(), last.abs_diff(first))).collect()
}

#[test]
fn what_fails_alone_speaks_against_the_operator_and_what_fails_with_a_control_does_not() {
    let second = Duration::from_secs(1);
    let read = |name: &str, is_control, lines: &[&str]| {
        Report::read(name.to_owned(), is_control, &lines.join("\n"), Duration::ZERO, second)
    };
    let client = read(
        "client",
        false,
        &[
            r#"{"seq": 1, "elapsedMs": 3.5, "peerIp": "10.0.0.1"}"#,
            r#"{"seq": 11, "elapsedMs": 2000.1, "error": "timed out"}"#,
            r#"{"seq": 12, "elapsedMs": 0.1, "error": "refused"}"#,
            r#"{"seq": 21, "elapsedMs": 1001.0, "peerIp": "10.0.0.1"}"#,
            r#"{"seq": 31, "elapsedMs": 1050.0, "peerIp": "10.0.0.1"}"#,
        ],
    );
    let delays = [
        r#"{"seq": 10, "elapsedMs": 1100.0, "peerIp": "10.0.0.1"}"#,
        r#"{"seq": 31, "elapsedMs": 270.0, "peerIp": "10.0.0.1"}"#,
    ];
    let control = read("control", true, &delays);
    assert_eq!(client.to_string(), "client: 5 sent, 4 failed, slowest 2000 ms, seen as 10.0.0.1 3x");
    let (starved, unexplained) = judge(&[client, control]);
    assert_eq!(starved, ["client at 10.00 s: timed out"]);
    assert_eq!(outages(&unexplained), [("client".to_owned(), second * 20)]);
    let unexplained: Vec<_> =
        unexplained.iter().map(|failure| (failure.to_string(), failure.resent.is_some())).collect();
    assert_eq!(
        unexplained,
        [
            ("client at 11.00 s: refused".to_owned(), false),
            ("client at 20.00 s: answered after 1001 ms".to_owned(), true),
            ("client at 30.00 s: answered after 1050 ms".to_owned(), true)
        ]
    );
}
