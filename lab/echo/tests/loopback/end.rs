//! The program ends at once, with exit code 0, and completes requests that it has accepted.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;

use crate::echo::{Running, Server, echo};

#[test]
fn serve_ends_on_either_signal_although_connections_are_open() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut server = Server::start();
        let mut idle = TcpStream::connect(("127.0.0.1", server.http)).unwrap();
        let mut long_lived = BufReader::new(TcpStream::connect(("127.0.0.1", server.tcp)).unwrap());
        long_lived.read_line(&mut String::new()).unwrap();
        let started = Instant::now();
        server.process.signal(signal);
        assert_eq!(server.process.wait().code(), Some(0));
        // It does not wait for the five seconds that a request in progress would get.
        assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
        // Closed, not reset.
        assert_eq!(long_lived.read(&mut [0]).unwrap(), 0);
        assert_eq!(idle.read(&mut [0]).unwrap(), 0);
    }
}

#[test]
fn a_request_in_progress_is_answered_before_the_end() {
    let mut server = Server::start();
    let mut stream = TcpStream::connect(("127.0.0.1", server.http)).unwrap();
    stream
        .write_all(
            b"POST /?delay=300 HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
        )
        .unwrap();
    // From here on the server has accepted the request.
    let mut go_on = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    stream.read_exact(&mut go_on).unwrap();
    server.process.signal(Signal::SIGTERM);
    stream.write_all(b"ok").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 OK"), "{reply}");
    assert!(server.process.wait().success());
}

#[test]
fn pause_waits_for_a_signal() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut pause = Running(echo().arg("pause").spawn().unwrap());
        pause.wait_for_handler(signal);
        std::thread::sleep(Duration::from_millis(50));
        assert!(pause.0.try_wait().unwrap().is_none(), "did not wait");
        pause.signal(signal);
        assert_eq!(pause.wait().code(), Some(0));
    }
}
