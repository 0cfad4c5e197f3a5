//! A netlink socket to netfilter or to routing: sends requests, receives datagrams, never waits
//! forever.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use isp_dataplane::netlink::{Failure, Malformed, Message, Messages, Reply, errno};
use netlink_sys::protocols::{NETLINK_NETFILTER, NETLINK_ROUTE};
use netlink_sys::{Socket as Raw, SocketAddr};
use nix::sys::socket::{getsockopt, setsockopt, sockopt};
use nix::sys::time::TimeVal;
use thiserror::Error;

/// How long the kernel may take to answer. Loading 50,000 Services takes 1.3 s on a slow machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The largest datagram of the kernel. Dumps come in pieces of at most 32 kB; an error is shorter.
const DATAGRAM: usize = 64 * 1024;

/// The receive buffer to ask for. Larger than the errors of the largest batch.
const RECEIVE_BUFFER: usize = 4 * 1024 * 1024;

/// The kernel's own overhead in the send buffer of a netlink socket.
const SEND_OVERHEAD: usize = 32;

/// Why the kernel did not answer, or not usefully.
#[derive(Debug, Error)]
pub enum SocketError {
    /// The socket could not be opened or set up.
    #[error(
        "cannot open a netlink socket: {0}; this program needs CAP_NET_ADMIN and a kernel with nf_tables"
    )]
    Open(#[source] io::Error),
    /// Sending failed.
    #[error("cannot send a request of {length} bytes to the kernel: {source}")]
    Send {
        /// The length of the request.
        length: usize,
        /// The error.
        source: io::Error,
    },
    /// Receiving failed.
    #[error("cannot receive the kernel's answer: {0}")]
    Receive(#[source] io::Error),
    /// The answer did not come in time.
    #[error("the kernel did not answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The kernel dropped messages because the receive buffer was full.
    #[error("the kernel dropped messages because this program read them too slowly (ENOBUFS)")]
    Lost,
    /// The answer is not what the kernel sends.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The program lacks the right to ask.
    #[error("the kernel refused: this program needs CAP_NET_ADMIN")]
    NotPermitted,
    /// The kernel refused the request.
    #[error("the kernel refused: {0}")]
    Refused(Failure),
    /// The objects kept changing while they were being read.
    #[error("the kernel's state changed {attempts} times while it was being read")]
    Interrupted {
        /// The number of attempts.
        attempts: u32,
    },
}

/// An open socket.
pub(crate) struct Socket {
    raw: Raw,
    port: u32,
    sequence: u32,
    buffer: Vec<u8>,
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.raw.as_fd()
    }
}

impl Socket {
    /// Opens a socket to netfilter.
    pub(crate) fn open() -> Result<Self, SocketError> {
        Self::open_to(NETLINK_NETFILTER)
    }

    /// Opens a socket to routing.
    pub(crate) fn open_route() -> Result<Self, SocketError> {
        Self::open_to(NETLINK_ROUTE)
    }

    fn open_to(protocol: isize) -> Result<Self, SocketError> {
        let mut raw = Raw::new(protocol).map_err(SocketError::Open)?;
        let address = raw.bind_auto().map_err(SocketError::Open)?;
        raw.connect(&SocketAddr::new(0, 0)).map_err(SocketError::Open)?;
        raw.set_ext_ack(true).map_err(SocketError::Open)?;
        raw.set_cap_ack(true).map_err(SocketError::Open)?;
        // Refused in a user namespace, where the default has to do.
        let _ = setsockopt(&raw, sockopt::RcvBufForce, &RECEIVE_BUFFER);
        let this =
            Self { raw, port: address.port_number(), sequence: 0, buffer: Vec::with_capacity(DATAGRAM) };
        this.wait_at_most(PATIENCE)?;
        Ok(this)
    }

    /// The number by which the kernel knows this socket: the owner of tables, the sender of
    /// changes.
    pub(crate) fn port(&self) -> u32 {
        self.port
    }

    pub(crate) fn raw(&self) -> &Raw {
        &self.raw
    }

    /// A number that no earlier request of this socket had.
    pub(crate) fn next_sequence(&mut self) -> u32 {
        self.reserve_sequences(1)
    }

    /// The first of several such numbers. 0 means a notification, so it is left out.
    pub(crate) fn reserve_sequences(&mut self, count: u32) -> u32 {
        let first = match self.sequence.checked_add(1) {
            Some(first) if first.checked_add(count).is_some() => first,
            _ => 1,
        };
        self.sequence = first + count - 1;
        first
    }

    fn wait_at_most(&self, time: Duration) -> Result<(), SocketError> {
        let seconds = time.as_secs().try_into().unwrap_or(i64::MAX);
        // A timeout of zero would mean none.
        let micros = if seconds == 0 { time.subsec_micros().max(1) } else { time.subsec_micros() };
        let time = TimeVal::new(seconds, micros.into());
        let set = setsockopt(&self.raw, sockopt::ReceiveTimeout, &time)
            .and_then(|()| setsockopt(&self.raw, sockopt::SendTimeout, &time));
        set.map_err(|errno| SocketError::Open(errno.into()))
    }

    /// The largest message that the kernel takes, after an attempt to make room for this one.
    pub(crate) fn room_for(&self, length: usize) -> usize {
        let room = || {
            getsockopt(&self.raw, sockopt::SndBuf).map_or(0, |buffer| buffer.saturating_sub(SEND_OVERHEAD))
        };
        let room_now = room();
        if room_now >= length {
            return room_now;
        }
        // The kernel doubles the value. SO_SNDBUFFORCE is refused in a user namespace; there,
        // net.core.wmem_max limits the buffer.
        let wanted = length + SEND_OVERHEAD;
        let forced = setsockopt(&self.raw, sockopt::SndBufForce, &wanted);
        let _ = forced.or_else(|_| setsockopt(&self.raw, sockopt::SndBuf, &wanted));
        room()
    }

    pub(crate) fn send(&self, bytes: &[u8]) -> Result<(), SocketError> {
        let length = bytes.len();
        loop {
            match self.raw.send(bytes, 0) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(SocketError::Send { length, source }),
            }
        }
    }

    /// The time by which an answer to a request that is sent now must have come.
    pub(crate) fn deadline() -> Instant {
        Instant::now() + PATIENCE
    }

    /// The next datagram before a deadline.
    pub(crate) fn receive_until(&mut self, deadline: Instant) -> Result<Messages<'_>, SocketError> {
        if Instant::now() > deadline {
            return Err(SocketError::Timeout(PATIENCE));
        }
        self.receive()
    }

    /// The next datagram.
    pub(crate) fn receive(&mut self) -> Result<Messages<'_>, SocketError> {
        loop {
            self.buffer.clear();
            match self.raw.recv(&mut self.buffer, 0) {
                Ok(_) => return Ok(Messages(&self.buffer)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(SocketError::Timeout(PATIENCE));
                }
                Err(error) if error.raw_os_error() == Some(errno::ENOBUFS) => return Err(SocketError::Lost),
                Err(error) => return Err(SocketError::Receive(error)),
            }
        }
    }

    /// Sends one request and hands every object of the answer to the function. Reads the whole
    /// answer even after an error of the function, so that the next request finds an empty socket.
    pub(crate) fn ask(
        &mut self,
        request: &[u8],
        sequence: u32,
        mut each: impl FnMut(Message<'_>) -> Result<(), Malformed>,
    ) -> Result<Asked, SocketError> {
        self.send(request)?;
        let deadline = Self::deadline();
        let mut asked = Asked::Consistent;
        let mut malformed = None;
        loop {
            for message in self.receive_until(deadline)? {
                let message = message?;
                if message.sequence != sequence {
                    continue;
                }
                if message.is_interrupted() {
                    asked = Asked::Interrupted;
                }
                let result = match Reply::read(message)? {
                    Reply::Object(object) => {
                        malformed = malformed.or(each(object).err());
                        continue;
                    }
                    Reply::Lost => return Err(SocketError::Lost),
                    Reply::Answered { result, .. } | Reply::Done { result, .. } => result,
                };
                return match (result, malformed) {
                    (Err(failure), _) if failure.errno == errno::EINTR => Ok(Asked::Interrupted),
                    (Err(failure), _) if failure.errno == errno::EPERM => Err(SocketError::NotPermitted),
                    (Err(failure), _) => Err(SocketError::Refused(failure)),
                    (Ok(()), Some(malformed)) => Err(malformed.into()),
                    (Ok(()), None) => Ok(asked),
                };
            }
        }
    }
}

/// How an answer with several objects came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// All objects are of one moment.
    Consistent,
    /// They changed meanwhile: ask again.
    Interrupted,
}
