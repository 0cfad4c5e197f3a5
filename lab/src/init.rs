//! The lab's init: process 1 of the lab's pid namespace, in its own mount and network namespaces.
//! It sets up the network, starts every component, restarts those that exit, and forwards one port
//! of the host's loopback to the API server. If it is killed, the kernel kills everything else in
//! the lab.
//!
//! `launch` runs in the host's namespaces, creates the new ones and exits; `run` is init itself.
//! Each place has a thread, because a thread can have its own namespaces. Programs are started from
//! the thread of their place.

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

/// Why init failed. Its log and `up` show the error.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum InitError {
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(
        "cannot {what}: {source}; the lab needs root and a kernel with pid, mount and network namespaces"
    )]
    Namespace { what: &'static str, source: Errno },
    #[error("cannot mount {}: {source}", path.display())]
    Mount { path: PathBuf, source: Errno },
    #[error(
        "cannot set up the network of {place}: {source}; the kernel needs veth, bridge, br_netfilter and nftables with nat"
    )]
    Network { place: String, source: CommandError },
    #[error("cannot set /proc/sys/net/{key} in {place}: {source}; the kernel lacks this feature")]
    Sysctl { place: String, key: &'static str, source: io::Error },
    #[error(
        "cannot listen on 127.0.0.1:{port}: {source}; choose another port with --api-port, or omit the option"
    )]
    Port { port: u16, source: io::Error },
    #[error("cannot {what}: {source}")]
    Io { what: &'static str, source: io::Error },
    #[error("the thread of {0} has exited")]
    PlaceGone(String),
}

/// Creates the namespaces, starts init in them, records its process id and returns.
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

/// Runs init. Returns only on error.
pub fn run(directory: &Path) -> Result<(), InitError> {
    let lab = LabDir::new(directory.to_owned());
    let spec = lab.spec()?;
    // A socket stays in the network namespace that it was created in: here, still the host's.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, spec.host_port))
        .map_err(|source| InitError::Port { port: spec.host_port, source })?;
    unshare(CloneFlags::CLONE_NEWNET)
        .map_err(|source| InitError::Namespace { what: "create a network namespace", source })?;
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
        .map_err(|source| InitError::Io { what: "read the assigned port", source })?
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

/// Mounts /proc for this pid namespace, and a private /run.
fn own_mounts() -> Result<(), InitError> {
    let none = None::<&str>;
    place::mount_at(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE)?;
    place::mount_at(Some("proc"), "/proc", Some("proc"), MsFlags::empty())?;
    mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, Some("mode=0755"))
        .map_err(|source| InitError::Mount { path: "/run".into(), source })
}
