//! A proxy that can do what HAProxy and nginx cannot: mark its sockets, and run in any control
//! group. It forwards to the original destination and adds a header. Tests start this program again
//! as the relay, inside the pod.

use std::env;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::world::World;

const PORT: &str = "ISP_RELAY_PORT";
const MARK: &str = "ISP_RELAY_MARK";
const UPSTREAMS: &str = "ISP_RELAY_UPSTREAMS";
const READY: &str = "the relay listens";
/// A request that passed the relay as often as this is in a loop.
const MOST: usize = 5;

/// How the relay connects.
#[derive(Clone, Default)]
pub(crate) struct Relay {
    /// The mark of its sockets.
    pub(crate) mark: Option<u32>,
    /// Addresses, one of each family, that it connects to instead of the original destination.
    pub(crate) upstreams: Option<[IpAddr; 2]>,
}

/// Starts the relay in the pod. `before` starts it under another user or in a control group.
pub(crate) fn start(world: &mut World, before: &[&str], port: u16, relay: &Relay) {
    let program = world.copied(&env::current_exe().unwrap());
    let test = [&program, "--exact", "relay::this_program_relays_if_another_test_asks_for_it", "--nocapture"];
    let mut command: Command = world.command("pod", &[before, &test].concat());
    command.env(PORT, port.to_string());
    command.envs(relay.mark.map(|mark| (MARK, mark.to_string())));
    command.envs(relay.upstreams.map(|[v4, v6]| (UPSTREAMS, format!("{v4},{v6}"))));
    world.start_command(command, READY);
}

#[test]
fn this_program_relays_if_another_test_asks_for_it() {
    let Ok(port) = env::var(PORT) else { return };
    let port = port.parse().unwrap();
    let mark = env::var(MARK).ok().map(|mark| mark.parse().unwrap());
    let upstreams = env::var(UPSTREAMS).ok().map(|list| {
        let (v4, v6) = list.split_once(',').unwrap();
        [v4.parse().unwrap(), v6.parse().unwrap()]
    });
    let relay = Relay { mark, upstreams };
    let v6 = listen(Ipv6Addr::UNSPECIFIED.into(), port);
    let v4 = listen(Ipv4Addr::UNSPECIFIED.into(), port);
    println!("{READY}");
    let other = relay.clone();
    thread::spawn(move || accept(&v6, &other));
    accept(&v4, &relay);
}

fn listen(address: IpAddr, port: u16) -> TcpListener {
    let address = SocketAddr::new(address, port);
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP)).unwrap();
    if address.is_ipv6() {
        socket.set_only_v6(true).unwrap();
    }
    socket.bind(&address.into()).unwrap();
    socket.listen(128).unwrap();
    socket.into()
}

fn accept(listener: &TcpListener, relay: &Relay) {
    for client in listener.incoming() {
        let (client, relay) = (client.unwrap(), relay.clone());
        thread::spawn(move || forward(client, &relay));
    }
}

fn forward(mut client: TcpStream, relay: &Relay) -> io::Result<()> {
    let of = SockRef::from(&client);
    let is_v4 = client.local_addr()?.is_ipv4();
    let mut to = if is_v4 { of.original_dst_v4()? } else { of.original_dst_v6()? };
    if let (Some(upstreams), Some(original)) = (relay.upstreams, to.as_socket()) {
        to = SocketAddr::new(upstreams[usize::from(!is_v4)], original.port()).into();
    }
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte)?;
        request.push(byte[0]);
    }
    let mut request = String::from_utf8_lossy(&request).into_owned();
    if request.matches("X-Via").count() >= MOST {
        return client.shutdown(Shutdown::Both);
    }
    let line = request.find("\r\n").unwrap_or_default();
    request.insert_str(line, "\r\nX-Via: relay");

    let server = Socket::new(to.domain(), Type::STREAM, Some(Protocol::TCP))?;
    if let Some(mark) = relay.mark {
        server.set_mark(mark)?;
    }
    server.connect(&to)?;
    let mut server: TcpStream = server.into();
    server.write_all(request.as_bytes())?;
    let (mut from, mut into) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || io::copy(&mut from, &mut into).and_then(|_| into.shutdown(Shutdown::Write)));
    io::copy(&mut server, &mut client)?;
    client.shutdown(Shutdown::Write)
}
