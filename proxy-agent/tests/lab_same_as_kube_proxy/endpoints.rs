//! Endpoints: servers that tell their own address and the one they see, on two ports, over TCP, UDP
//! and SCTP.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::thread::{self, JoinHandle};

use isp_lab::Entrance;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::sctp;

/// The ports that every endpoint serves.
pub(crate) const PORTS: [u16; 2] = [8080, 8081];

/// The servers of one namespace, on a thread of their own, until they are dropped.
pub(crate) struct Endpoints {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoints {
    /// Starts the servers, and returns when they listen.
    pub(crate) fn start(entrance: Entrance, addresses: Vec<IpAddr>) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (listening, started) = std::sync::mpsc::channel();
        let thread = thread::spawn(move || {
            entrance.enter().unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut servers = JoinSet::new();
                for port in PORTS {
                    let any = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
                    servers.spawn(connections(TcpListener::bind(any).await.unwrap()));
                    for address in &addresses {
                        let own = SocketAddr::new(*address, port);
                        servers.spawn(datagrams(UdpSocket::bind(own).await.unwrap(), own));
                    }
                }
                for address in addresses {
                    servers.spawn(sctp::serve(address));
                }
                listening.send(()).unwrap();
                let _ = stopped.await;
            });
        });
        started.recv().unwrap();
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Endpoints {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(crate) fn answer(own: SocketAddr, peer: IpAddr) -> String {
    format!("{own} {peer}")
}

async fn connections(listener: TcpListener) {
    loop {
        let Ok((mut connection, peer)) = listener.accept().await else { continue };
        tokio::spawn(async move {
            let own = connection.local_addr().unwrap();
            let own = SocketAddr::new(own.ip().to_canonical(), own.port());
            // The client may have gone.
            let _ = connection.write_all(answer(own, peer.ip().to_canonical()).as_bytes()).await;
            let _ = connection.shutdown().await;
        });
    }
}

async fn datagrams(socket: UdpSocket, own: SocketAddr) {
    let mut question = [0; 16];
    loop {
        // An error is the ICMP answer to an earlier datagram.
        let Ok((_, peer)) = socket.recv_from(&mut question).await else { continue };
        let _ = socket.send_to(answer(own, peer.ip()).as_bytes(), peer).await;
    }
}
