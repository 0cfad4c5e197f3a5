//! The client that sends continuously, from before the object is applied until after it is deleted.

use std::fs;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use isp_lab::{Place, echo_program};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::story::StoryError;
use crate::table::Target;
use crate::world::{OPEN, World};

/// Milliseconds between requests, each over a new connection, and the timeout of a request.
const INTERVAL: &str = "20";
const TIMEOUT: &str = "5000";
/// How long to wait for the last requests.
const END: Duration = Duration::from_secs(15);

/// The results of the requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    pub(crate) failed: u64,
    pub(crate) slowest_ms: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) failures: Vec<String>,
}

#[derive(Debug, Default)]
struct Tally {
    sent: AtomicU64,
    failed: AtomicU64,
}

/// One running client per IP family.
pub(crate) struct Steady {
    programs: Vec<Program>,
}

/// The client process for one address.
struct Program {
    child: Child,
    tally: Arc<Tally>,
    reader: JoinHandle<Counts>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    seq: u64,
    elapsed_ms: f64,
    error: Option<String>,
}

impl Steady {
    pub(crate) async fn start(world: &World) -> Result<Self, StoryError> {
        let mut programs = Vec::new();
        for addresses in &world.addresses {
            programs.push(Program::start(world, addresses.target(Target::ExternalAddress)).await?);
        }
        Ok(Self { programs })
    }

    /// The counts as text, for the screen.
    pub(crate) fn counts(&self) -> String {
        let all = |of: fn(&Tally) -> &AtomicU64| -> u64 {
            self.programs.iter().map(|program| of(&program.tally).load(Ordering::Relaxed)).sum()
        };
        format!("{} requests, {} failed", all(|tally| &tally.sent), all(|tally| &tally.failed))
    }

    /// Stops sending, and waits for requests in flight.
    pub(crate) async fn end(self) -> Result<Counts, StoryError> {
        let mut all = Counts::default();
        for program in self.programs {
            all.add(program.end().await?);
        }
        Ok(all)
    }
}

impl Program {
    async fn start(world: &World, target: SocketAddr) -> Result<Self, StoryError> {
        let program = echo_program()?.display().to_string();
        let target = target.to_string();
        let arguments = [
            &program,
            "ask",
            "http",
            &target,
            "--path",
            OPEN,
            "--count",
            "0",
            "--interval",
            INTERVAL,
            "--timeout",
            TIMEOUT,
        ];
        let command = world.lab.command_in(&Place::Client, &arguments).await?;
        let mut command = Command::from(command);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().map_err(StoryError::Client)?;
        let lines =
            child.stdout.take().ok_or_else(|| StoryError::Missing("the client's output".to_owned()))?;
        let tally = Arc::new(Tally::default());
        let reader = tokio::spawn(read(lines, tally.clone()));
        Ok(Self { child, tally, reader })
    }

    async fn end(mut self) -> Result<Counts, StoryError> {
        if let Some(client) = self.program() {
            // The client may have just ended.
            let _ = kill(client, Signal::SIGINT);
        }
        let gone = || StoryError::Missing("the client to exit".to_owned());
        timeout(END, self.child.wait()).await.map_err(|_| gone())?.map_err(StoryError::Client)?;
        self.reader.await.map_err(|_| gone())
    }

    /// The process id of the client itself: the child is nsenter, which waits for it.
    fn program(&self) -> Option<Pid> {
        let id = self.child.id()?;
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok().map(Pid::from_raw)
    }
}

async fn read(output: ChildStdout, tally: Arc<Tally>) -> Counts {
    let mut counts = Counts::default();
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        counts.take(&line);
        tally.sent.store(counts.sent, Ordering::Relaxed);
        tally.failed.store(counts.failed, Ordering::Relaxed);
    }
    counts
}

/// The number of failures to report individually.
const TOLD: usize = 10;

impl Counts {
    fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.failed += other.failed;
        self.slowest_ms = self.slowest_ms.max(other.slowest_ms);
        self.failures.extend(other.failures);
        self.failures.truncate(TOLD);
    }

    fn take(&mut self, line: &str) {
        self.sent += 1;
        let (why, seq) = match serde_json::from_str::<Line>(line) {
            Ok(line) => {
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a few thousand at most"
                )]
                let elapsed = line.elapsed_ms.ceil() as u64;
                self.slowest_ms = self.slowest_ms.max(elapsed);
                (line.error, line.seq)
            }
            Err(error) => (Some(error.to_string()), self.sent),
        };
        if let Some(why) = why {
            self.failed += 1;
            if self.failures.len() < TOLD {
                self.failures.push(format!("request {seq}: {why}"));
            }
        }
    }
}

#[test]
fn answers_and_failures_are_counted() {
    let mut counts = Counts::default();
    counts.take(r#"{"seq": 1, "elapsedMs": 1.5, "peerIp": "192.0.2.1"}"#);
    counts.take(r#"{"seq": 2, "elapsedMs": 20.1, "error": "timed out"}"#);
    counts.take("nonsense");
    assert_eq!((counts.sent, counts.failed, counts.slowest_ms), (3, 2, 21));
    assert_eq!(counts.failures[0], "request 2: timed out");
    let mut all = counts.clone();
    all.add(counts);
    assert_eq!((all.sent, all.failed, all.slowest_ms, all.failures.len()), (6, 4, 21, 4));
}
