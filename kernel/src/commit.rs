//! One batch on its way: sent, answered, and its failure explained.

use std::fmt;

use isp_dataplane::netlink::{Batch, Change, Failure, Frame, Reply, Subject, errno};
use thiserror::Error;

use crate::socket::{Socket, SocketError};

/// Why a batch was not committed.
#[derive(Debug, Error)]
pub enum CommitError {
    /// The kernel refused operations, and so the whole batch.
    #[error("the kernel refused the transaction and changed nothing: {}", list(.0))]
    Refused(Vec<Refusal>),
    /// Another program changed a table since the batch was decided.
    #[error("the transaction was not sent, because {0}")]
    Overtaken(Change),
    /// Other programs committed faster than this one.
    #[error("other programs changed nftables {attempts} times in a row while this transaction was tried")]
    Busy {
        /// The number of attempts.
        attempts: u32,
    },
    /// The batch had to be sent in parts, because the send buffer is too small; only the first ones
    /// were committed.
    #[error("only {committed} of {parts} parts of the transaction were committed: {source}")]
    Partial {
        /// The number of parts that were committed.
        committed: usize,
        /// The number of parts.
        parts: usize,
        /// The error of the next part.
        source: Box<CommitError>,
    },
    /// Nobody knows whether the batch was committed. Read the tables again.
    #[error("the kernel's answer to the transaction is missing, so it may have been committed: {0}")]
    Unknown(#[source] SocketError),
    /// The batch was not sent.
    #[error(transparent)]
    Socket(#[from] SocketError),
}

impl CommitError {
    /// Whether another process owns one of the tables.
    pub fn is_owned_by_another(&self) -> bool {
        matches!(self, Self::Refused(all) if all.iter().any(|each| {
            each.failure.errno == errno::EPERM && each.subject.is_some()
        }))
    }
}

/// The number of refusals that a message has.
const SHOWN: usize = 3;

fn list(refusals: &[Refusal]) -> String {
    let mut shown: Vec<_> = refusals.iter().take(SHOWN).map(ToString::to_string).collect();
    if let more @ 1.. = refusals.len().saturating_sub(SHOWN) {
        shown.push(format!("and {more} more"));
    }
    shown.join("; ")
}

/// An operation that the kernel refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The operation; `None` if it is the batch as a whole.
    pub subject: Option<Subject>,
    /// The key of the element.
    pub key: Option<String>,
    /// The kernel's reason.
    pub failure: Failure,
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.subject, &self.key) {
            (Some(subject), Some(key)) => write!(out, "{subject}, key {key}: ")?,
            (Some(subject), None) => write!(out, "{subject}: ")?,
            (None, _) => {}
        }
        write!(out, "{}", self.failure)?;
        let hint = match (self.failure.errno, &self.subject) {
            (errno::EPERM, Some(_)) => "another process owns the table; stop that process",
            (errno::EPERM, None) => "this program needs CAP_NET_ADMIN",
            (errno::EOPNOTSUPP, None) => "the kernel has no nf_tables",
            (errno::ENFILE, _) => "the set is full",
            _ => return Ok(()),
        };
        write!(out, " ({hint})")
    }
}

/// How a frame ended.
pub(crate) enum Outcome {
    Committed,
    /// The generation is not the current one.
    Stale,
}

/// Sends a frame and waits for the answer to its last operation.
pub(crate) fn exchange(socket: &mut Socket, batch: &Batch, frame: &Frame) -> Result<Outcome, CommitError> {
    socket.send(&frame.bytes)?;
    let mut refusals = Vec::new();
    let deadline = Socket::deadline();
    loop {
        for message in socket.receive_until(deadline).map_err(CommitError::Unknown)? {
            let message = message.map_err(SocketError::from).map_err(CommitError::Unknown)?;
            // Answers to earlier frames may still be on their way.
            let ours = frame.first..=frame.last;
            if !ours.contains(&message.sequence) {
                continue;
            }
            let reply = Reply::read(message).map_err(SocketError::from).map_err(CommitError::Unknown)?;
            let Reply::Answered { sequence, result } = reply else { continue };
            if let Err(failure) = result {
                if sequence == frame.first && failure.errno == errno::ERESTART {
                    return Ok(Outcome::Stale);
                }
                let subject = batch.subject(frame, sequence).cloned();
                let key = failure.offset.and_then(|offset| batch.key_at(frame, sequence, offset));
                refusals.push(Refusal { subject, key, failure });
                // The kernel rejects the batch as a whole, or its commit failed.
                if sequence == frame.first {
                    return Err(CommitError::Refused(refusals));
                }
            }
            if sequence == frame.last {
                return if refusals.is_empty() {
                    Ok(Outcome::Committed)
                } else {
                    Err(CommitError::Refused(refusals))
                };
            }
        }
    }
}
