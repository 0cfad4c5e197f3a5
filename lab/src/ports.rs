//! Free ports for programs that are started later.
//!
//! A port that is only looked up can be taken before its program binds it: by another test program,
//! or by any outgoing connection on loopback. So a port is reserved: a connection to it is opened
//! and closed from this side, which leaves the port in `TIME_WAIT` for a minute. Meanwhile the
//! kernel gives it to nobody who asks for any port. A listener that asks for this port gets it,
//! because listeners set `SO_REUSEADDR`, as those of Rust and Go do.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

/// A free address on loopback, reserved for the program that binds it within a minute.
pub fn free_address() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let near = TcpStream::connect(address)?;
    let (far, _) = listener.accept()?;
    // The side that closes first keeps its port in TIME_WAIT.
    drop(far);
    drop(near);
    Ok(address)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_free_address_is_kept_for_the_one_who_asks_for_it() {
        let address = free_address().unwrap();
        let local = format!("0100007F:{:04X}", address.port());
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        let mut sockets = table.lines().filter_map(|line| line.split_whitespace().nth(1));
        assert!(sockets.any(|socket| socket == local), "{local}\n{table}");
        TcpListener::bind(address).unwrap();
    }

    #[test]
    fn addresses_differ() {
        let all: std::collections::BTreeSet<_> = (0..200).map(|_| free_address().unwrap()).collect();
        assert_eq!(all.len(), 200);
    }
}
