//! The commits of others: followed by their notifications.

use std::os::fd::{AsFd, BorrowedFd};
use std::thread;
use std::time::{Duration, Instant};

use isp_dataplane::netlink::Change;
use isp_dataplane::nft::Table;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{Kernel, table_name};
use crate::read;
use crate::socket::SocketError;

/// How long the notification of a commit may take after the commit.
const NOTIFICATION: Duration = Duration::from_secs(1);

impl Kernel {
    /// Follows the commits of others up to the current generation. Their notifications come shortly
    /// after the generation changes. If they do not come, they are lost.
    pub(super) fn settle(&mut self) -> Result<(), SocketError> {
        let now = read::generation(&mut self.socket)?;
        let deadline = Instant::now() + NOTIFICATION;
        loop {
            self.watch.drain()?;
            if self.watch.observer.has_seen(now) {
                return Ok(());
            }
            if Instant::now() > deadline {
                self.watch.observer.start_at(now);
                self.watch.observer.lose();
                return Ok(());
            }
            thread::sleep(NOTIFICATION / 10_000);
        }
    }

    /// Follows tables that are about to be read or replaced: earlier changes of them do not matter.
    pub(super) fn follow_anew<'a>(
        &mut self,
        tables: impl IntoIterator<Item = &'a Table>,
    ) -> Result<(), SocketError> {
        self.settle()?;
        for table in tables {
            self.watch.observer.follow(table_name(table));
        }
        Ok(())
    }

    /// Waits until another program changes a table that was read or loaded, but not longer than
    /// this.
    pub fn changed(&mut self, timeout: Duration) -> Result<Option<Change>, SocketError> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(change) = self.change_so_far()? {
                return Ok(Some(change));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.wait(None, left)?;
        }
    }

    /// The change that has already been notified.
    pub(crate) fn change_so_far(&mut self) -> Result<Option<Change>, SocketError> {
        self.watch.drain()?;
        Ok(self.watch.observer.tell())
    }

    /// Waits until a notification comes, or the other descriptor is readable, or the time is over.
    pub(crate) fn wait(&self, other: Option<BorrowedFd<'_>>, timeout: Duration) -> Result<(), SocketError> {
        let mut waited = vec![PollFd::new(self.watch.as_fd(), PollFlags::POLLIN)];
        waited.extend(other.map(|other| PollFd::new(other, PollFlags::POLLIN)));
        // Rounded up: a timeout of zero would not wait.
        let timeout = timeout.as_millis().saturating_add(1);
        let timeout = PollTimeout::from(u16::try_from(timeout).unwrap_or(u16::MAX));
        match poll(&mut waited, timeout) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(errno) => Err(SocketError::Receive(errno.into())),
        }
    }
}
