//! Forwards connections from the host's loopback to the API server in the lab, byte for byte: TLS
//! is end to end.

use std::io;
use std::net::Ipv4Addr;

use tokio::net::TcpStream;

pub(super) async fn serve(listener: std::net::TcpListener, api_port: u16) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (outside, _) = listener.accept().await?;
        tokio::spawn(carry(outside, api_port));
    }
}

/// While the API server is down, the connection is closed, as it would be at the API server's own
/// port.
async fn carry(mut outside: TcpStream, api_port: u16) -> io::Result<()> {
    let mut inside = TcpStream::connect((Ipv4Addr::LOCALHOST, api_port)).await?;
    outside.set_nodelay(true)?;
    inside.set_nodelay(true)?;
    tokio::io::copy_bidirectional(&mut outside, &mut inside).await?;
    Ok(())
}
