//! Reads of the API server that reviews share. Anybody who reaches the port can send reviews, so no review reads for itself.
//!
//! One reader serves all reviews, in rounds. A round reads once for every review that waits for it, and the next one begins after a rest
//! that grows with the number of names that were read and with the time that it took. So the API server has the requests of one round at a time, a few times a second,
//! however many callers there are; and each review is compared with something that was read after it came, never with a memory.
//!
//! Nothing here knows what is read.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};

/// How many reviews may wait for the next round.
const QUEUE: usize = 64;

/// What reads may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How long a review waits for its answer, and a round for the API server.
    pub(crate) patience: Duration,
    /// How many names a round reads; a review that does not fit waits for the next one.
    pub(crate) names: usize,
    /// The least time between the end of a round and the next.
    pub(crate) rest: Duration,
}

/// Why a review knows nothing of the cluster.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum Unread {
    #[error("{QUEUE} reviews wait to be compared with the cluster already")]
    Crowded,
    #[error("it names {count} namespaces, and at most {most} are read")]
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

/// Where reviews ask.
pub(crate) struct Rounds<T> {
    queue: mpsc::Sender<Waiting<T>>,
    limits: Limits,
}

/// The other end: whoever runs it reads.
pub(crate) struct Reader<T> {
    queue: mpsc::Receiver<Waiting<T>>,
    limits: Limits,
}

pub(crate) fn rounds<T>(limits: Limits) -> (Rounds<T>, Reader<T>) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    (Rounds { queue: sender, limits }, Reader { queue: receiver, limits })
}

impl<T> Rounds<T> {
    /// What there is under these names, read after this was called.
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
    /// Reads for those who ask; ends when nobody can any more.
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
                // A review that has given up meanwhile is not interested.
                let _ = answer.send(result.clone());
            }
            sleep(pause(rest, count, began.elapsed())).await;
        }
    }

    /// The first and those behind it, as many as one round has room for; the one that did not fit begins the next.
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

/// How many names are read for the price of the shortest rest.
const NAMES_IN_A_REST: u32 = 16;

/// A round of many names is followed by a longer rest, and an API server that is slow is asked less often.
fn pause(rest: Duration, names: usize, took: Duration) -> Duration {
    let names = u32::try_from(names).unwrap_or(u32::MAX);
    (rest / NAMES_IN_A_REST).saturating_mul(names).max(took * 3).clamp(rest, rest * 8)
}

#[cfg(test)]
mod tests;
