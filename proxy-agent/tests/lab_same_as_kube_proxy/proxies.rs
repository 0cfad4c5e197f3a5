//! The two proxies, each in its world: the real kube-proxy in nftables mode, and the agent.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::thread;

use isp_lab::provision::{KubernetesVersion, program_of};
use isp_lab::{ControlPlane, Entrance};
use isp_testkit::{Process, agent};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::addresses::NODE;
use crate::settings::Settings;
use crate::world::World;

/// A node that is served by one of the two.
pub(crate) struct Served {
    pub(crate) name: &'static str,
    pub(crate) world: World,
    // Ends before its world.
    process: Process,
    way_to_api_server: JoinHandle<()>,
}

impl Served {
    pub(crate) fn by_kube_proxy(cluster: &ControlPlane, settings: Settings, files: &Path) -> Self {
        let world = World::new();
        let kubeconfig = cluster.kubeconfig();
        let configuration = files.join("kube-proxy.json");
        std::fs::write(&configuration, settings.of_kube_proxy(kubeconfig.to_str().unwrap()).to_string())
            .unwrap();
        let program =
            program_of(KubernetesVersion::default(), "kube-proxy", |line| eprintln!("{line}")).unwrap();
        let option = format!("--config={}", configuration.display());
        Self::start("kube-proxy", cluster, world, &[program.to_str().unwrap(), &option], files)
    }

    pub(crate) fn by_agent(cluster: &ControlPlane, settings: Settings, more: &[&str], files: &Path) -> Self {
        let kubeconfig = format!("KUBECONFIG={}", cluster.kubeconfig().display());
        let program = env!("CARGO_BIN_EXE_proxy-agent");
        let settings = settings.of_agent();
        let mut command = vec!["env", &kubeconfig, program, "beside", "--node-name", NODE, "--serve", "all"];
        command.extend(settings.iter().map(String::as_str).chain(more.iter().copied()));
        Self::start("agent", cluster, World::new(), &command, files)
    }

    fn start(
        name: &'static str,
        cluster: &ControlPlane,
        world: World,
        command: &[&str],
        files: &Path,
    ) -> Self {
        let way_to_api_server = lead(world.netns.entrance("node").unwrap(), api_server(cluster));
        let process = Process::start_in_place(world.netns.command("node", command), &files.join(name));
        Self { name, world, process, way_to_api_server }
    }

    /// The end of its log.
    pub(crate) fn log(&self) -> String {
        let log = self.process.complained();
        log.lines().rev().take(20).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the end of the log of {}, latest first:\n{}", self.name, self.log());
        }
        self.way_to_api_server.abort();
    }
}

fn api_server(cluster: &ControlPlane) -> SocketAddr {
    let server = agent::api_server(cluster)["server"].as_str().unwrap().to_owned();
    server.strip_prefix("https://").unwrap().parse().unwrap()
}

/// Leads connections to the API server's address on a namespace's loopback to the API server.
fn lead(entrance: Entrance, api_server: SocketAddr) -> JoinHandle<()> {
    let listen = move || {
        entrance.enter().unwrap();
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, api_server.port())).unwrap();
        listener.set_nonblocking(true).unwrap();
        listener
    };
    let listener = thread::spawn(listen).join().unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            tokio::spawn(async move {
                if let Ok(mut far) = TcpStream::connect(api_server).await {
                    // Either side may end it at any time.
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                }
            });
        }
    })
}
