//! The moments at which the kernel commits transactions of nftables, as it notifies them.

use std::time::{Duration, Instant};

use netlink_sys::protocols::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::namespace::Namespace;

/// `NFNLGRP_NFTABLES`.
const GROUP: u32 = 7;
/// `NFNL_SUBSYS_NFTABLES` and `NFT_MSG_NEWGEN`.
const NEW_GENERATION: u16 = 10 << 8 | 15;

/// The commits in a namespace.
pub(crate) struct Commits(mpsc::UnboundedReceiver<Instant>);

impl Commits {
    pub(crate) fn of(namespace: &Namespace) -> Self {
        let socket = namespace.run(|| {
            let mut socket = Socket::new(NETLINK_NETFILTER).unwrap();
            socket.bind(&SocketAddr::new(0, 0)).unwrap();
            socket.add_membership(GROUP).unwrap();
            socket.set_rx_buf_sz(32 << 20_i32).unwrap();
            socket
        });
        let (tell, told) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            let mut buffer = Vec::with_capacity(1 << 20);
            loop {
                buffer.clear();
                // Notifications that were dropped were of a transaction that nobody measures.
                let _ = socket.recv(&mut buffer, 0);
                let now = Instant::now();
                if kinds(&buffer).any(|kind| kind == NEW_GENERATION) && tell.send(now).is_err() {
                    return;
                }
            }
        });
        Self(told)
    }

    /// Forgets the commits so far.
    pub(crate) fn drain(&mut self) {
        while self.0.try_recv().is_ok() {}
    }

    /// The next commit, if it comes in time.
    pub(crate) async fn next(&mut self, patience: Duration) -> Option<Instant> {
        timeout(patience, self.0.recv()).await.ok().flatten()
    }
}

/// The types of the messages in a datagram.
fn kinds(mut datagram: &[u8]) -> impl Iterator<Item = u16> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(datagram.get(..4)?.try_into().ok()?);
        let kind = u16::from_ne_bytes(datagram.get(4..6)?.try_into().ok()?);
        let length = usize::try_from(length).ok()?.max(16).next_multiple_of(4);
        datagram = datagram.get(length..).unwrap_or_default();
        Some(kind)
    })
}
