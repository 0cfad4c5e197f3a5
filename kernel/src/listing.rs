//! Everything that a network namespace has, as the kernel's own messages. Nothing is interpreted.

use isp_dataplane::netlink::{Listing, errno};

use crate::socket::{Asked, Socket, SocketError};

/// How often the lists are asked for because they changed meanwhile.
const ATTEMPTS: u32 = 10;

/// Lists the contents of the network namespace that it was opened in.
pub struct Lister {
    netfilter: Socket,
    routing: Socket,
}

impl Lister {
    /// Opens the sockets.
    pub fn open() -> Result<Self, SocketError> {
        Ok(Self { netfilter: Socket::open()?, routing: Socket::open_route()? })
    }

    /// The tables, chains, rules, sets and elements of `nf_tables`.
    pub fn packet_rules(&mut self) -> Result<Vec<u8>, SocketError> {
        consistent(|| {
            let mut out = Vec::new();
            let mut sets = Vec::new();
            for listing in Listing::NETFILTER {
                let into = if listing == Listing::Sets { &mut sets } else { &mut out };
                if list(&mut self.netfilter, &listing, into)? == Asked::Interrupted {
                    return Ok(None);
                }
            }
            for elements in Listing::elements(&sets)? {
                match list(&mut self.netfilter, &elements, &mut out) {
                    Ok(Asked::Consistent) => {}
                    Ok(Asked::Interrupted) => return Ok(None),
                    // The set was deleted meanwhile.
                    Err(SocketError::Refused(failure)) if failure.errno == errno::ENOENT => return Ok(None),
                    Err(error) => return Err(error),
                }
            }
            out.append(&mut sets);
            Ok(Some(out))
        })
    }

    /// The addresses of the interfaces.
    pub fn addresses(&mut self) -> Result<Vec<u8>, SocketError> {
        self.routing(&[Listing::Addresses])
    }

    /// The interfaces, addresses, routes and routing rules.
    pub fn all_routing(&mut self) -> Result<Vec<u8>, SocketError> {
        self.routing(&Listing::ROUTING)
    }

    fn routing(&mut self, listings: &[Listing]) -> Result<Vec<u8>, SocketError> {
        consistent(|| {
            let mut out = Vec::new();
            for listing in listings {
                if list(&mut self.routing, listing, &mut out)? == Asked::Interrupted {
                    return Ok(None);
                }
            }
            Ok(Some(out))
        })
    }
}

/// Reads until nothing changes meanwhile.
fn consistent(
    mut read: impl FnMut() -> Result<Option<Vec<u8>>, SocketError>,
) -> Result<Vec<u8>, SocketError> {
    for _ in 0..ATTEMPTS {
        if let Some(found) = read()? {
            return Ok(found);
        }
    }
    Err(SocketError::Interrupted { attempts: ATTEMPTS })
}

fn list(socket: &mut Socket, listing: &Listing, out: &mut Vec<u8>) -> Result<Asked, SocketError> {
    let sequence = socket.next_sequence();
    socket.ask(&listing.write(sequence), sequence, |message| {
        message.append_to(out);
        Ok(())
    })
}
