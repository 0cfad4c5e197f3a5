//! Replies of the kernel to requests: acknowledgements, errors with their reasons, ends of dumps.

use std::fmt;
use std::io;

use super::attributes::{Attributes, Malformed};
use super::message::{HEADER, Message, control, flag};

/// Attributes of an error.
mod detail {
    pub(super) const TEXT: u16 = 1;
    pub(super) const OFFSET: u16 = 2;
}

/// The sign of success in an acknowledgement.
const SUCCESS: i32 = 0;

/// Error numbers with a meaning of their own here.
pub mod errno {
    /// Not the owner of the table, or no `CAP_NET_ADMIN`.
    pub const EPERM: i32 = 1;
    /// The object does not exist.
    pub const ENOENT: i32 = 2;
    /// The route does not exist.
    pub const ESRCH: i32 = 3;
    /// A dump was interrupted.
    pub const EINTR: i32 = 4;
    /// IPv6 is disabled on the interface of a route.
    pub const EACCES: i32 = 13;
    /// The object is in use.
    pub const EBUSY: i32 = 16;
    /// The object exists already.
    pub const EEXIST: i32 = 17;
    /// The set is full.
    pub const ENFILE: i32 = 23;
    /// The generation changed. The kernel returns it for a batch that was decided on an old state.
    pub const ERESTART: i32 = 85;
    /// The message is larger than the send buffer.
    pub const EMSGSIZE: i32 = 90;
    /// The kernel lacks a feature.
    pub const EOPNOTSUPP: i32 = 95;
    /// The kernel lacks the address family.
    pub const EAFNOSUPPORT: i32 = 97;
    /// The interface of a route is down.
    pub const ENETDOWN: i32 = 100;
    /// Messages were lost.
    pub const ENOBUFS: i32 = 105;
}

/// An error of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The error number, positive.
    pub errno: i32,
    /// The reason in the kernel's words, if it gave one.
    pub reason: Option<String>,
    /// The position of the attribute that it rejects, counted from the start of the request.
    pub offset: Option<usize>,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.errno {
            errno::ERESTART => out.write_str("another program changed nftables meanwhile (ERESTART)")?,
            other => io::Error::from_raw_os_error(other).fmt(out)?,
        }
        if let Some(reason) = &self.reason {
            write!(out, ": {reason}")?;
        }
        Ok(())
    }
}

/// A message of the kernel, by its meaning for the request.
#[derive(Debug)]
pub enum Reply<'a> {
    /// The request with this number was carried out, or failed.
    Answered {
        /// The sequence number of the request.
        sequence: u32,
        /// The error.
        result: Result<(), Failure>,
    },
    /// The dump is complete, or ended with an error.
    Done {
        /// The sequence number of the request.
        sequence: u32,
        /// The error.
        result: Result<(), Failure>,
        /// Whether the objects changed during the dump.
        interrupted: bool,
    },
    /// Messages were lost.
    Lost,
    /// An object.
    Object(Message<'a>),
}

impl<'a> Reply<'a> {
    /// Reads a message.
    pub fn read(message: Message<'a>) -> Result<Self, Malformed> {
        let sequence = message.sequence;
        Ok(match message.kind {
            control::ERROR => Self::Answered { sequence, result: result(message, HEADER)? },
            control::DONE => {
                Self::Done { sequence, result: result(message, 0)?, interrupted: message.is_interrupted() }
            }
            control::OVERRUN => Self::Lost,
            _ => Self::Object(message),
        })
    }
}

/// Reads the error number and what follows the header of the request.
fn result(message: Message<'_>, request_header: usize) -> Result<Result<(), Failure>, Malformed> {
    let Some((number, rest)) = message.body.split_first_chunk::<4>() else {
        // Old kernels end a dump without a number.
        return if message.kind == control::DONE { Ok(Ok(())) } else { Err(Malformed::Message) };
    };
    let number = i32::from_ne_bytes(*number);
    if number == SUCCESS {
        return Ok(Ok(()));
    }
    let mut failure = Failure { errno: number.saturating_neg(), reason: None, offset: None };
    // Without the flag, the whole request precedes the attributes. The socket asks for the flag.
    let has_details = message.flags & flag::ACK_ATTRIBUTES != 0
        && (message.flags & flag::ACK_CAPPED != 0 || message.kind == control::DONE);
    if has_details {
        for attribute in Attributes(rest.get(request_header..).unwrap_or_default()) {
            let attribute = attribute?;
            match attribute.kind {
                detail::TEXT => failure.reason = Some(attribute.text()?.to_owned()),
                detail::OFFSET => {
                    let bytes = attribute.value.try_into().map_err(|_| Malformed::Message)?;
                    failure.offset = usize::try_from(u32::from_ne_bytes(bytes)).ok();
                }
                _ => {}
            }
        }
    }
    Ok(Err(failure))
}

#[cfg(test)]
mod tests;
