//! Network namespaces. A thread lives in each: sockets that it opens and programs that it starts
//! are in the namespace.

use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use nix::sched::{CloneFlags, unshare};
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace. It goes with its thread and the last program in it.
#[derive(Clone)]
pub(crate) struct Namespace(mpsc::Sender<Job>);

impl Namespace {
    /// Makes a namespace in which every address of a range is local, and every other address has a
    /// route, as on a node.
    pub(crate) fn new(local: &str) -> Self {
        let (jobs, to_do) = mpsc::channel::<Job>();
        thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace needs root");
            for job in to_do {
                job();
            }
        });
        let this = Self(jobs);
        for arguments in [
            &["link", "set", "lo", "up"][..],
            &["link", "add", "node0", "type", "veth", "peer", "name", "node1"],
            &["address", "add", "192.0.2.1/24", "dev", "node0"],
            &["link", "set", "node0", "up"],
            &["link", "set", "node1", "up"],
            &["route", "add", "default", "dev", "node0"],
            &["route", "add", "local", local, "dev", "lo"],
        ] {
            this.command("ip", arguments);
        }
        this
    }

    /// Runs a function in the namespace.
    pub(crate) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (answer, answered) = mpsc::channel();
        let job = move || drop(answer.send(job()));
        self.0.send(Box::new(job)).unwrap();
        answered.recv().unwrap()
    }

    fn command(&self, program: &'static str, arguments: &[&str]) {
        let mut command = Command::new(program);
        command.args(arguments);
        let output = self.run(move || command.output().unwrap());
        assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    }

    /// Lets the API server of the machine be reached at its own address inside: this program
    /// accepts the connections inside and opens others outside.
    pub(crate) fn relay(&self, address: SocketAddr) -> JoinHandle<()> {
        let listener = self.run(move || TcpListener::bind(address).unwrap());
        listener.set_nonblocking(true).unwrap();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        tokio::spawn(async move {
            loop {
                let (mut inside, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let mut outside = TcpStream::connect(address).await?;
                    inside.set_nodelay(true)?;
                    outside.set_nodelay(true)?;
                    copy_bidirectional(&mut inside, &mut outside).await
                });
            }
        })
    }
}
