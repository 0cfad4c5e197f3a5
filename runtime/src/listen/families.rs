//! Binds a wildcard address in the address families that the node supports.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use nix::errno::Errno;
use tokio::net::TcpListener;

/// Binds a listener. `[::]` accepts IPv4 and IPv6; on a kernel without IPv6 it falls back to
/// `0.0.0.0`.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    or_ipv4(address, TcpListener::bind(address).await).await
}

async fn or_ipv4(address: SocketAddr, bound: io::Result<TcpListener>) -> io::Result<TcpListener> {
    match bound {
        Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && lacks_ipv6(&error) => {
            TcpListener::bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port())).await
        }
        bound => bound,
    }
}

/// Whether the kernel lacks IPv6. Other errors, such as a port in use, would not go away with IPv4.
fn lacks_ipv6(error: &io::Error) -> bool {
    [Errno::EAFNOSUPPORT, Errno::EADDRNOTAVAIL]
        .map(|errno| Some(errno as i32))
        .contains(&error.raw_os_error())
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    const ANY: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);

    async fn answers(listener: &TcpListener, ip: IpAddr) -> bool {
        let port = listener.local_addr().unwrap().port();
        TcpStream::connect((ip, port)).await.is_ok()
    }

    #[tokio::test]
    async fn a_wildcard_takes_callers_of_both_families() {
        let listener = bind(ANY).await.unwrap();
        assert!(answers(&listener, Ipv4Addr::LOCALHOST.into()).await);
        if listener.local_addr().unwrap().is_ipv6() {
            assert!(answers(&listener, Ipv6Addr::LOCALHOST.into()).await);
        }
    }

    #[tokio::test]
    async fn without_ipv6_a_wildcard_means_ipv4_and_a_taken_port_stays_an_error() {
        let missing = io::Error::from_raw_os_error(Errno::EAFNOSUPPORT as i32);
        let listener = or_ipv4(ANY, Err(missing)).await.unwrap();
        assert!(listener.local_addr().unwrap().is_ipv4());
        let taken = io::Error::from_raw_os_error(Errno::EADDRINUSE as i32);
        assert!(or_ipv4(ANY, Err(taken)).await.is_err());
        let own = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 0);
        let missing = io::Error::from_raw_os_error(Errno::EAFNOSUPPORT as i32);
        assert!(or_ipv4(own, Err(missing)).await.is_err(), "only a wildcard has another meaning");
    }
}
