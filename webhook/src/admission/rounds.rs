//! Batched reads from the API server. Anyone who can reach the port can send reviews, so no review
//! triggers reads of its own.
//!
//! One reader serves all reviews, in rounds. A round reads once for all waiting reviews. The pause
//! before the next round grows with the number of names and with the duration of the read. So the
//! API server sees the requests of one round at a time, a few times a second, however many callers
//! there are. Each review is checked against data read after it arrived, never against a cache.
//!
//! This module does not depend on what is read.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};

/// How many reviews may wait for the next round.
const QUEUE: usize = 64;

/// Limits of the reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How long a review waits for its result, and a round for the API server.
    pub(crate) patience: Duration,
    /// Maximum number of names per round. A review that does not fit waits for the next one.
    pub(crate) names: usize,
    /// Minimum pause between two rounds.
    pub(crate) rest: Duration,
}

/// Why a review got no data.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum Unread {
    #[error("{QUEUE} reviews are already waiting to be compared with the cluster")]
    Crowded,
    #[error("it names {count} namespaces; the webhook reads at most {most}")]
    TooMany { count: usize, most: usize },
    #[error("the API server did not answer within {0:?}")]
    Late(Duration),
    #[error("{0}")]
    Failed(String),
}

type Answer<T> = oneshot::Sender<Result<Arc<T>, Unread>>;

struct Waiting<T> {
    names: BTreeSet<String>,
    answer: Answer<T>,
}

/// The side of the reviews.
pub(crate) struct Rounds<T> {
    queue: mpsc::Sender<Waiting<T>>,
    limits: Limits,
}

/// The side that reads; it has to be run.
pub(crate) struct Reader<T> {
    queue: mpsc::Receiver<Waiting<T>>,
    limits: Limits,
}

pub(crate) fn rounds<T>(limits: Limits) -> (Rounds<T>, Reader<T>) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    (Rounds { queue: sender, limits }, Reader { queue: receiver, limits })
}

impl<T> Rounds<T> {
    /// The data for these names, read after this call.
    pub(crate) async fn read(&self, names: BTreeSet<String>) -> Result<Arc<T>, Unread> {
        let Limits { patience, names: most, .. } = self.limits;
        if names.len() > most {
            return Err(Unread::TooMany { count: names.len(), most });
        }
        let (answer, answered) = oneshot::channel();
        self.queue.try_send(Waiting { names, answer }).map_err(|error| match error {
            TrySendError::Full(_) => Unread::Crowded,
            TrySendError::Closed(_) => Unread::Late(patience),
        })?;
        match timeout(patience, answered).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) | Err(_) => Err(Unread::Late(patience)),
        }
    }
}

impl<T> Reader<T> {
    /// Reads for waiting reviews; returns when all senders are dropped.
    pub(crate) async fn run<F>(mut self, read: impl Fn(BTreeSet<String>) -> F)
    where
        F: Future<Output = Result<T, Unread>>,
    {
        let Limits { patience, rest, .. } = self.limits;
        let mut next = None;
        loop {
            let first = match next.take() {
                Some(first) => first,
                None => match self.queue.recv().await {
                    Some(first) => first,
                    None => return,
                },
            };
            let (names, round) = self.gather(first, &mut next);
            if round.is_empty() {
                continue;
            }
            let (began, count) = (Instant::now(), names.len());
            let result = match timeout(patience, read(names)).await {
                Ok(result) => result.map(Arc::new),
                Err(_) => Err(Unread::Late(patience)),
            };
            for answer in round {
                // The review may have timed out meanwhile.
                let _ = answer.send(result.clone());
            }
            sleep(pause(rest, count, began.elapsed())).await;
        }
    }

    /// Collects waiting reviews, starting with `first`, up to the limit of names. The first one
    /// that does not fit goes to `next`.
    fn gather(
        &mut self,
        first: Waiting<T>,
        next: &mut Option<Waiting<T>>,
    ) -> (BTreeSet<String>, Vec<Answer<T>>) {
        let (mut names, mut round) = (BTreeSet::new(), Vec::new());
        let mut candidate = Some(first);
        while let Some(waiting) = candidate {
            if !waiting.answer.is_closed() {
                let more = waiting.names.difference(&names).count();
                if !round.is_empty() && names.len() + more > self.limits.names {
                    *next = Some(waiting);
                    break;
                }
                names.extend(waiting.names);
                round.push(waiting.answer);
            }
            candidate = self.queue.try_recv().ok();
        }
        (names, round)
    }
}

/// How many names the minimum pause covers.
const NAMES_IN_A_REST: u32 = 16;

/// The pause after a round: longer after many names, and longer if the API server is slow.
fn pause(rest: Duration, names: usize, took: Duration) -> Duration {
    let names = u32::try_from(names).unwrap_or(u32::MAX);
    (rest / NAMES_IN_A_REST).saturating_mul(names).max(took * 3).clamp(rest, rest * 8)
}

#[cfg(test)]
mod tests;
