//! The lab's init: process 1 of its own pid namespace, in mount and network namespaces of its own. It lays the
//! network, starts every component and restarts those that end, and leads one port of the host's loopback to the API
//! server. When it is killed, the kernel ends everything else with it.
//!
//! `launch` runs in the host's namespaces, makes the new ones and ends; `run` is init itself. It uses threads for
//! places (a thread can be in a namespace of its own), and starts programs from the thread of their place.

mod control;
mod forward;
mod place;
mod supervise;

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use thiserror::Error;

pub(crate) use self::control::{ControlError, Request, ask};
pub(crate) use self::place::Place;
pub(crate) use self::supervise::Status;
use self::supervise::Supervisor;
use crate::command::CommandError;
use crate::network;
use crate::spec::{LabDir, Listening, SpecError};
use crate::topology::{CLIENT, CLIENT_2};

/// Why the lab's init could not go on. Its log shows it, and `up` does.
#[derive(Debug, Error)]
pub enum InitError {
    /// A file of the lab's directory.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A namespace.
    #[error(
        "cannot {what}: {source}; the lab needs root and a kernel with pid, mount and network namespaces"
    )]
    Namespace {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        source: Errno,
    },
    /// A mount.
    #[error("cannot mount {}: {source}", path.display())]
    Mount {
        /// Where.
        path: PathBuf,
        /// What the kernel said.
        source: Errno,
    },
    /// A part of the network.
    #[error(
        "cannot lay the network of {place}: {source}; the kernel must have veth, bridge, br_netfilter and nftables with nat"
    )]
    Network {
        /// Which place.
        place: String,
        /// What failed.
        source: CommandError,
    },
    /// A kernel setting.
    #[error("cannot set /proc/sys/net/{key} in {place}: {source}; the kernel lacks this feature")]
    Sysctl {
        /// Which place.
        place: String,
        /// Which setting.
        key: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The host's port.
    #[error("cannot listen on 127.0.0.1:{port}: {source}; choose another with --api-port, or leave it out")]
    Port {
        /// Which port.
        port: u16,
        /// Why.
        source: io::Error,
    },
    /// A thread or file that init itself needs.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The thread of a place ended.
    #[error("the thread of {0} is gone")]
    PlaceGone(String),
}

/// Makes the namespaces, starts init in them, notes its process id and ends.
pub fn launch(directory: &Path) -> Result<(), InitError> {
    let lab = LabDir::new(directory.to_owned());
    let namespaces = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS;
    unshare(namespaces).map_err(|source| InitError::Namespace { what: "make namespaces", source })?;
    let io = |what| move |source| InitError::Io { what, source };
    let log = fs::File::create(lab.log("init")).map_err(io("create init's log"))?;
    let child = Command::new("/proc/self/exe")
        .arg("init")
        .arg(directory)
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(io("share init's log"))?)
        .stderr(log)
        .spawn()
        .map_err(io("start init"))?;
    fs::write(lab.pid_file(), child.id().to_string()).map_err(io("write init's process id"))
}

/// Init. Returns only when something is wrong.
pub fn run(directory: &Path) -> Result<(), InitError> {
    let lab = LabDir::new(directory.to_owned());
    let spec = lab.spec()?;
    // A socket stays in the network namespace it was made in: this one is the host's.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, spec.host_port))
        .map_err(|source| InitError::Port { port: spec.host_port, source })?;
    unshare(CloneFlags::CLONE_NEWNET)
        .map_err(|source| InitError::Namespace { what: "make a network namespace", source })?;
    own_mounts()?;

    let control_plane = Place::here("control-plane")?;
    for name in network::places(&spec.topology) {
        control_plane.command("ip", &["netns", "add", &name], "")?;
    }
    control_plane.lay(network::control_plane(&spec.topology))?;
    let families = spec.topology.families;
    for (name, setup) in [
        ("router", network::router(families)),
        ("client", network::client(CLIENT, families)),
        ("client-2", network::client(CLIENT_2, families)),
    ] {
        Place::in_network(name)?.lay(setup)?;
    }
    let mut places = vec![control_plane];
    for (node, directory) in spec.topology.nodes.iter().zip(&spec.node_directories) {
        let place = Place::of_node(node.name.as_str(), directory)?;
        place.lay(network::node(&spec.topology, node))?;
        places.push(place);
    }

    let port = listener
        .local_addr()
        .map_err(|source| InitError::Io { what: "read the port that was given", source })?
        .port();
    let supervisor = Arc::new(Supervisor::new(places, lab.clone(), spec.components));
    supervisor.start_first();
    supervisor.clone().reap();
    lab.write_listening(Listening { host_port: port })?;
    serve(listener, spec.api_port, &lab, supervisor)
}

fn serve(
    listener: TcpListener,
    api_port: u16,
    lab: &LabDir,
    supervisor: Arc<Supervisor>,
) -> Result<(), InitError> {
    let io = |what| move |source| InitError::Io { what, source };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(io("start the runtime"))?;
    runtime.block_on(async {
        tokio::try_join!(
            async { forward::serve(listener, api_port).await.map_err(io("accept connections")) },
            async {
                control::serve(&lab.control_socket(), supervisor)
                    .await
                    .map_err(io("serve the control socket"))
            },
        )
    })?;
    Ok(())
}

/// A /proc of this pid namespace, and a /run that nobody else sees.
fn own_mounts() -> Result<(), InitError> {
    let none = None::<&str>;
    place::mount_at(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE)?;
    place::mount_at(Some("proc"), "/proc", Some("proc"), MsFlags::empty())?;
    mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, Some("mode=0755"))
        .map_err(|source| InitError::Mount { path: "/run".into(), source })
}
