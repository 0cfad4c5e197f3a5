//! How fast connections are set up through the rules: real TCP connections, one after another, from
//! the node to ClusterIPs. The endpoints are addresses of the node itself.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use socket2::SockRef;

use crate::namespace::Namespace;

const PATIENCE: Duration = Duration::from_secs(5);

/// Accepts connections on a port of every address of the namespace.
pub(crate) fn serve(namespace: &Namespace, port: u16) {
    let listener = namespace.run(move || TcpListener::bind(("0.0.0.0", port)).unwrap());
    thread::spawn(move || listener.incoming().for_each(drop));
}

/// Connects to the targets for a while, in an order that visits all of them. Returns the number of
/// connections in a second. Every connection must succeed.
pub(crate) fn rate(namespace: &Namespace, targets: &[SocketAddr], time: Duration) -> f64 {
    let targets = targets.to_vec();
    namespace.run(move || {
        let (start, mut made, mut place) = (Instant::now(), 0_u32, 0);
        while start.elapsed() < time {
            // A prime step, so that neighbours do not follow each other.
            place = (place + 7919) % targets.len();
            let stream = TcpStream::connect_timeout(&targets[place], PATIENCE)
                .unwrap_or_else(|error| panic!("{}: {error}", targets[place]));
            // A reset leaves no socket behind.
            SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
            made += 1;
        }
        f64::from(made) / start.elapsed().as_secs_f64()
    })
}
