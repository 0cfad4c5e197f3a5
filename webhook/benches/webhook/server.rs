//! The two servers, each as a process on one core: the webhook, and istiod, whose injector runs
//! without a pod.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use isp_lab::provision::{self, KubernetesVersion};
use isp_lab::{free_address, istio};
use isp_testkit::control_plane::SYSTEM;
use isp_testkit::until;
use isp_testkit::webhook::{Cluster, SERVER};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use serde_json::{Value, json};

use crate::ask;
use crate::load::Cores;

pub(crate) struct Server {
    pub(crate) name: &'static str,
    process: Child,
    address: SocketAddr,
    metrics: SocketAddr,
    path: &'static str,
    /// The server name in its certificate.
    known_as: &'static str,
    trust: Vec<u8>,
    is_right: fn(&Value) -> bool,
    counted: fn(&str) -> Option<Counted>,
    /// Whether its metrics count aborted requests as failures.
    pub(crate) counts_leavers: bool,
    directory: tempfile::TempDir,
}

/// The numbers of correctly and incorrectly answered reviews in a program's metrics.
#[derive(Debug, Clone, Copy)]
enum Counted {
    Right(f64),
    Wrong(f64),
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) right: f64,
    pub(crate) wrong: f64,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            let log = fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
            let end: Vec<&str> = log.lines().rev().take(20).collect();
            eprintln!("the end of the log of {}:", self.name);
            end.iter().rev().for_each(|line| eprintln!("{line}"));
        }
    }
}

/// Starts a program on a core. The kernel ends it when this process ends.
fn start(program: &Path, core: usize, directory: &Path, set_up: impl FnOnce(&mut Command)) -> Child {
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig=KILL", "--", "nice", "-n-20", "taskset", "--cpu-list", &core.to_string()])
        .arg(program);
    set_up(&mut command);
    let log = File::create(directory.join("log")).unwrap();
    let (out, errors) = (log.try_clone().unwrap(), log);
    command.current_dir(directory).stdin(Stdio::null()).stdout(out).stderr(errors).spawn().unwrap()
}

pub(crate) async fn apply(cluster: &Cluster, objects: &str) {
    let apply = ["apply", "--server-side", "--filename=-"];
    let output = cluster.control_plane.kubectl_with_input(&apply, objects).await.unwrap();
    assert!(output.success, "{output:?}");
}

impl Server {
    pub(crate) async fn webhook(cluster: &Cluster, cores: &Cores) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (address, metrics) = (free_address().unwrap(), free_address().unwrap());
        let program = std::env::var_os("ISP_BENCH_PROGRAM");
        let program = program
            .expect("`cargo xtask bench webhook` builds the program as in the images and passes its path");
        let process = start(Path::new(&program), cores.server, directory.path(), |command| {
            command.env("KUBECONFIG", cluster.kubeconfig()).env("POD_NAMESPACE", SYSTEM).arg("run");
            command.args([format!("--listen={address}"), format!("--admin={metrics}")]);
        });
        let mut this = Self {
            name: "webhook",
            process,
            address,
            metrics,
            path: "/mutate/pods",
            known_as: SERVER,
            trust: Vec::new(),
            is_right: |patch| {
                let path = "/metadata/annotations/sidecar.istio.io~1interceptionMode";
                *patch == json!([{"op": "add", "path": path, "value": "TPROXY"}])
            },
            counted: |line| {
                let (labels, value) = line.strip_prefix("isp_webhook_reviews_total")?.split_once(' ')?;
                let value = value.parse().unwrap();
                let right = labels.contains("Pods") && labels.contains("Set");
                Some(if right { Counted::Right(value) } else { Counted::Wrong(value) })
            },
            counts_leavers: false,
            directory,
        };
        until("the webhook is trusted", async || !cluster.bundle().await.is_empty()).await;
        this.trust = cluster.bundle().await;
        this.wait().await;
        this
    }

    /// istiod with Istio's own manifests, as in the lab, but as a plain process.
    pub(crate) async fn istiod(cluster: &Cluster, cores: &Cores) -> Self {
        let program_of = |name| {
            provision::program_of(KubernetesVersion::default(), name, |line| eprintln!("{line}")).unwrap()
        };
        cluster.kubectl(&["create", "namespace", istio::NAMESPACE]).await;
        apply(cluster, &istio::manifests(&program_of("istioctl")).unwrap()).await;
        let directory = tempfile::tempdir().unwrap();
        let (address, metrics) = (free_address().unwrap(), free_address().unwrap());
        let process = start(&program_of("pilot-discovery"), cores.server, directory.path(), |command| {
            let kubeconfig = cluster.control_plane.kubeconfig();
            command.env("POD_NAMESPACE", istio::NAMESPACE).env("POD_NAME", "istiod").arg("discovery");
            command.arg(format!("--kubeconfig={}", kubeconfig.display()));
            command.args([format!("--httpsAddr={address}"), format!("--monitoringAddr={metrics}")]);
            // Unused ports.
            command.args([
                "--httpAddr=127.0.0.1:0",
                "--grpcAddr=127.0.0.1:0",
                "--secureGRPCAddr=127.0.0.1:0",
            ]);
            command.arg("--ctrlz_port=0");
        });
        let mut this = Self {
            name: "istiod",
            process,
            address,
            metrics,
            path: "/inject",
            known_as: "istiod.istio-system.svc",
            trust: Vec::new(),
            is_right: |patch| patch.to_string().contains("\"istio-proxy\""),
            counted: |line| {
                let value = |name| Some(line.strip_prefix(name)?.rsplit_once(' ')?.1.parse().unwrap());
                let right = value("sidecar_injection_success_total").map(Counted::Right);
                right.or_else(|| value("sidecar_injection_failure_total").map(Counted::Wrong))
            },
            counts_leavers: true,
            directory,
        };
        let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), istio::NAMESPACE);
        until("istiod is trusted", async || {
            let map = maps.get_opt("istio-ca-root-cert").await.unwrap();
            let trust = map.and_then(|map| map.data?.remove("root-cert.pem"));
            this.trust = trust.unwrap_or_default().into_bytes();
            !this.trust.is_empty()
        })
        .await;
        this.wait().await;
        this
    }

    async fn wait(&self) {
        until(&format!("{} answers correctly", self.name), async || self.answers_rightly().await).await;
    }

    pub(crate) async fn answers_rightly(&self) -> bool {
        let patch = ask::patch(self.address, self.known_as, self.path, &self.trust).await;
        patch.is_some_and(|patch| (self.is_right)(&patch))
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}{}", self.address, self.path)
    }

    pub(crate) fn process(&self) -> u32 {
        self.process.id()
    }

    /// The counts in its metrics.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for count in ask::metrics(self.metrics).iter().filter_map(|line| (self.counted)(line)) {
            match count {
                Counted::Right(count) => counts.right += count,
                Counted::Wrong(count) => counts.wrong += count,
            }
        }
        counts
    }
}
