//! Servers that say which port a connection has reached.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::thread;

use isp_lab::Entrance;
use socket2::{Domain, Protocol, Socket, Type};

/// Listens on ports of a namespace, in both families and transparently, until the test ends. A
/// connection gets the name of the place and the port that listens.
pub(crate) fn listen(entrance: Entrance, place: &'static str, ports: &'static [u16]) {
    let entered = thread::spawn(move || {
        entrance.enter().unwrap();
        for port in ports {
            for address in [IpAddr::from(Ipv4Addr::UNSPECIFIED), Ipv6Addr::UNSPECIFIED.into()] {
                let listener = listener(SocketAddr::new(address, *port));
                thread::spawn(move || serve(&listener, &format!("{place}:{port}\n")));
            }
        }
    });
    entered.join().unwrap();
}

fn listener(address: SocketAddr) -> TcpListener {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP)).unwrap();
    if address.is_ipv6() {
        socket.set_only_v6(true).unwrap();
        socket.set_ip_transparent_v6(true).unwrap();
    } else {
        socket.set_ip_transparent_v4(true).unwrap();
    }
    socket.bind(&address.into()).unwrap();
    socket.listen(128).unwrap();
    socket.into()
}

fn serve(listener: &TcpListener, words: &str) {
    for mut client in listener.incoming().map_while(Result::ok) {
        let _ = client.write_all(words.as_bytes());
    }
}
