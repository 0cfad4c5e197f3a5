//! The notifications of the kernel, on a socket of their own: a flood of them, such as kube-proxy's
//! first sync, cannot push out the answers to our own requests.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use isp_dataplane::netlink::Observer;

use crate::socket::{Socket, SocketError};

/// How long one reading of notifications may last. What is left is read the next time.
const DRAINING: Duration = Duration::from_secs(1);

/// `NFNLGRP_NFTABLES`.
const GROUP: u32 = 7;

/// The socket and what it told.
pub(crate) struct Watch {
    socket: Socket,
    pub(crate) observer: Observer,
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Watch {
    /// Ignores the changes of the socket with this port.
    pub(crate) fn open(own_port: u32) -> Result<Self, SocketError> {
        let socket = Socket::open()?;
        socket.raw().set_non_blocking(true).map_err(SocketError::Open)?;
        let this = Self { socket, observer: Observer::new(own_port) };
        this.join()?;
        Ok(this)
    }

    pub(crate) fn join(&self) -> Result<(), SocketError> {
        self.socket.raw().add_membership(GROUP).map_err(SocketError::Open)
    }

    /// Stops listening. The kernel then spends no time on the notifications of a large commit.
    pub(crate) fn leave(&self) -> Result<(), SocketError> {
        self.socket.raw().drop_membership(GROUP).map_err(SocketError::Open)
    }

    /// Reads what has arrived, for a bounded time: others may commit faster than this reads.
    pub(crate) fn drain(&mut self) -> Result<(), SocketError> {
        let deadline = Instant::now() + DRAINING;
        while Instant::now() < deadline {
            match self.socket.receive() {
                Ok(messages) => {
                    for message in messages {
                        self.observer.read(message?)?;
                    }
                }
                Err(SocketError::Timeout(_)) => return Ok(()),
                Err(SocketError::Lost) => self.observer.lose(),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
