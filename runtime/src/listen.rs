//! Opens a listening socket that another process may still hold. A pod with host networking uses
//! the node's ports, and a terminating pod may take a while to release them.

mod families;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

pub use self::families::bind;

const AGAIN: Duration = Duration::from_millis(250);

/// Opens the socket, retrying for up to `patience` while the address is in use.
pub async fn listen(address: SocketAddr, patience: Duration) -> io::Result<TcpListener> {
    let began = Instant::now();
    let mut said = false;
    loop {
        match bind(address).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && began.elapsed() < patience => {
                if !said {
                    warn!(%address, "another process listens on this address; waiting up to {} s", patience.as_secs());
                }
                said = true;
                sleep(AGAIN).await;
            }
            result => {
                if said && result.is_ok() {
                    info!(%address, waited = ?began.elapsed(), "the address is free now");
                }
                return result;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_that_becomes_free_in_time_is_taken() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = taken.local_addr().unwrap();
        let waiting = tokio::spawn(listen(address, Duration::from_secs(30)));
        sleep(AGAIN * 2).await;
        assert!(!waiting.is_finished());
        drop(taken);
        assert_eq!(waiting.await.unwrap().unwrap().local_addr().unwrap(), address);
    }

    #[tokio::test]
    async fn an_address_that_stays_taken_is_given_up_in_time() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let error = listen(taken.local_addr().unwrap(), AGAIN).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
