//! Tracked connections that must not outlive an endpoint or a Service.
//!
//! A UDP client that keeps its source port keeps its connection, and so its endpoint, for as long
//! as it sends. The entry has to go when the endpoint does.

use isp_dataplane::netlink::conntrack::{Family, Flow, delete, dump};
use isp_dataplane::netlink::{Reply, errno};
use thiserror::Error;

use crate::socket::{Socket, SocketError};

/// The number of deletions in one datagram.
const DELETIONS: usize = 64;

/// Why connections could not be listed or deleted.
#[derive(Debug, Error)]
pub enum ConntrackError {
    /// The kernel did not answer usefully.
    #[error("cannot delete tracked connections: {0}; this needs the kernel module nf_conntrack_netlink")]
    Socket(#[from] SocketError),
}

/// A socket for tracked connections.
pub struct Conntrack {
    socket: Socket,
}

impl Conntrack {
    /// Opens the socket.
    pub fn open() -> Result<Self, ConntrackError> {
        Ok(Self { socket: Socket::open()? })
    }

    /// Deletes the connections of a family and protocol that the function chooses. Returns their
    /// number.
    pub fn delete(
        &mut self,
        family: Family,
        protocol: u8,
        mut is_stale: impl FnMut(&Flow) -> bool,
    ) -> Result<usize, ConntrackError> {
        let mut stale = Vec::new();
        let sequence = self.socket.next_sequence();
        let mut request = Vec::new();
        dump(&mut request, sequence, family, protocol);
        // Connections come and go while they are listed. One that comes now goes to a current
        // endpoint.
        self.socket.ask(&request, sequence, |message| {
            let flow = Flow::read(message)?.filter(|flow| flow.original.protocol == protocol);
            stale.extend(flow.filter(&mut is_stale));
            Ok(())
        })?;
        let mut deleted = 0;
        for flows in stale.chunks(DELETIONS) {
            deleted += self.delete_some(flows)?;
        }
        Ok(deleted)
    }

    /// Deletes connections with one datagram. Those that ended meanwhile do not count.
    fn delete_some(&mut self, flows: &[Flow]) -> Result<usize, SocketError> {
        let first = self.socket.reserve_sequences(u32::try_from(flows.len()).unwrap_or(u32::MAX));
        let mut request = Vec::new();
        for (sequence, flow) in (first..).zip(flows) {
            delete(&mut request, sequence, flow);
        }
        self.socket.send(&request)?;
        let deadline = Socket::deadline();
        let (mut answered, mut deleted) = (0, 0);
        while answered < flows.len() {
            for message in self.socket.receive_until(deadline)? {
                let message = message?;
                if message.sequence < first {
                    continue;
                }
                let Reply::Answered { result, .. } = Reply::read(message)? else { continue };
                answered += 1;
                match result {
                    Ok(()) => deleted += 1,
                    Err(failure) if failure.errno == errno::ENOENT => {}
                    Err(failure) => return Err(SocketError::Refused(failure)),
                }
            }
        }
        Ok(deleted)
    }
}
