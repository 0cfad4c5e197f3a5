//! A pod and the world outside, with an application on both sides.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use isp_lab::{End, NetNs};
use tempfile::TempDir;

/// The addresses of the pod, one of each family.
pub(crate) const POD: [&str; 2] = ["10.1.0.2", "fd01::2"];
/// Addresses outside, two of each family.
pub(crate) const OUTSIDE: [[&str; 2]; 2] = [["10.1.0.1", "198.51.100.7"], ["fd01::1", "2001:db8::7"]];

/// The application's ports; `echo` has the same ones outside.
pub(crate) const HTTP: u16 = 8080;
pub(crate) const TCP: u16 = 8081;
pub(crate) const UDP: u16 = 8082;

/// A user of the pod that is not the proxy.
pub(crate) const APPLICATION: &[&str] = &["setpriv", "--reuid=2000", "--regid=2000", "--clear-groups"];

/// What the server saw of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The address of the client.
    pub(crate) peer: IpAddr,
    /// The address that the server was reached by.
    pub(crate) local: SocketAddr,
    /// The proxies that the request has passed.
    pub(crate) via: Option<String>,
}

/// Processes end with the namespaces.
pub(crate) struct World {
    places: NetNs,
    started: Vec<Child>,
    directory: TempDir,
}

impl Drop for World {
    fn drop(&mut self) {
        for child in &mut self.started {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let places = NetNs::new(&["pod", "outside"]).unwrap();
        let pod = End { place: "pod", interface: "eth0", addresses: &["10.1.0.2/24", "fd01::2/64"] };
        let outside = End { place: "outside", interface: "eth0", addresses: &["10.1.0.1/24", "fd01::1/64"] };
        places.cable(pod, outside).unwrap();
        for [gateway, other] in OUTSIDE {
            places.check("pod", &["ip", "route", "add", "default", "via", gateway], "").unwrap();
            places.check("outside", &["ip", "address", "add", other, "dev", "lo"], "").unwrap();
        }
        // Other users cannot enter the directories of this one.
        let directory = TempDir::new().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let mut world = Self { places, started: Vec::new(), directory };
        for place in ["pod", "outside"] {
            let echo = world.copied(&isp_lab::echo_program().unwrap());
            world.start(place, &[&echo, "serve"], "listening");
        }
        world
    }

    /// A copy of a program that every user can run.
    pub(crate) fn copied(&self, program: &Path) -> String {
        let copy = self.directory.path().join(program.file_name().unwrap());
        if !copy.exists() {
            fs::copy(program, &copy).unwrap();
        }
        copy.to_str().unwrap().to_owned()
    }

    /// Writes a file that every user can read.
    pub(crate) fn write(&self, name: &str, content: &str) -> String {
        let file = self.file(name);
        fs::write(&file, content).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// The path of a file that every user can create.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts a program that prints a line with this word when it is ready.
    pub(crate) fn start(&mut self, place: &str, arguments: &[&str], ready: &str) {
        self.start_command(self.places.command(place, arguments), ready);
    }

    pub(crate) fn start_command(&mut self, mut command: Command, ready: &str) {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let found = lines.by_ref().map_while(Result::ok).any(|line| line.contains(ready));
        assert!(found, "{command:?} ended without {ready:?}");
        // Whatever it prints later must not end it.
        std::thread::spawn(move || lines.for_each(drop));
        self.started.push(child);
    }

    /// Starts a program that is ready when it listens on this port.
    pub(crate) fn start_listener(&mut self, arguments: &[&str], port: u16) {
        let child = self.places.command("pod", arguments).stdin(Stdio::null()).spawn().unwrap();
        self.started.push(child);
        let listens = || {
            let listed = self.run("pod", &["ss", "-Hltn", &format!("sport = :{port}")]).unwrap();
            listed.lines().count() >= 2
        };
        for _ in 0..1200 {
            if listens() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("{arguments:?} does not listen on both families of port {port}");
    }

    pub(crate) fn command(&self, place: &str, arguments: &[&str]) -> Command {
        self.places.command(place, arguments)
    }

    /// Runs a program and returns what it prints, or what it complains about if it fails.
    pub(crate) fn run(&self, place: &str, arguments: &[&str]) -> Result<String, String> {
        let output = self.places.exec(place, arguments, "").unwrap();
        if output.success { Ok(output.stdout) } else { Err(output.stderr) }
    }

    /// Programs the pod.
    pub(crate) fn redirect(&self, arguments: &str) -> Result<String, String> {
        let program = [env!("CARGO_BIN_EXE_pod-redirect")];
        self.run("pod", &program.into_iter().chain(arguments.split_whitespace()).collect::<Vec<_>>())
    }

    /// Sets something in the pod.
    pub(crate) fn sysctl(&self, setting: &str) {
        self.run("pod", &["sysctl", "-qw", setting]).unwrap();
    }

    /// Asks from outside, from this address.
    pub(crate) fn ask_pod(&self, protocol: &str, from: &str, to: (&str, u16)) -> Result<Seen, String> {
        self.ask("outside", &[], protocol, &["--bind", from], to)
    }

    /// Asks from the pod.
    pub(crate) fn ask_from_pod(
        &self,
        as_whom: &[&str],
        protocol: &str,
        to: (&str, u16),
    ) -> Result<Seen, String> {
        self.ask("pod", as_whom, protocol, &[], to)
    }

    fn ask(
        &self,
        place: &str,
        before: &[&str],
        protocol: &str,
        options: &[&str],
        (address, port): (&str, u16),
    ) -> Result<Seen, String> {
        let echo = self.copied(&isp_lab::echo_program().unwrap());
        let target = SocketAddr::new(address.parse().unwrap(), port).to_string();
        let ask = [before, &[&echo, "ask", protocol, "--timeout", "3000"], options, &[&target]].concat();
        let answer = self.places.exec(place, &ask, "").unwrap().stdout;
        let field = |name: &str| {
            let (_, rest) = answer.split_once(&format!("\"{name}\":\""))?;
            Some(rest.split('"').next().unwrap().to_owned())
        };
        match (field("error"), field("peerIp"), field("local")) {
            (None, Some(peer), Some(local)) => {
                let (peer, local) = (peer.parse().unwrap(), local.parse().unwrap());
                Ok(Seen { peer, local, via: field("x-via") })
            }
            _ => Err(answer),
        }
    }
}

/// What the server sees of a request that passes these proxies, or none.
#[expect(clippy::unnecessary_wraps, reason = "compared with answers, which can be errors")]
pub(crate) fn seen(peer: &str, (local, port): (&str, u16), via: Option<&str>) -> Result<Seen, String> {
    let local = SocketAddr::new(local.parse().unwrap(), port);
    Ok(Seen { peer: peer.parse().unwrap(), local, via: via.map(str::to_owned) })
}
