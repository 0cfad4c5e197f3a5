//! The two programs that are compared, each in a namespace of its own.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use isp_lab::ControlPlane;
use isp_lab::provision::{self, KubernetesVersion};
use isp_testkit::Process;
use serde_json::json;
use tokio::time::sleep;

use crate::cluster::NODE;
use crate::namespace::Namespace;

/// A program that programs Services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proxy {
    Agent,
    /// With this `minSyncPeriod`. Its default is 1 s, and it takes 0 for the default.
    KubeProxy(&'static str),
}

impl Proxy {
    pub(crate) const ALL: [Self; 3] = [Self::Agent, Self::KubeProxy("1s"), Self::KubeProxy("1ms")];

    /// The names of its counters of commits or syncs, and of their duration.
    fn metric(self) -> &'static str {
        match self {
            Self::Agent => "isp_beside_commit_duration_seconds",
            Self::KubeProxy(_) => "kubeproxy_sync_proxy_rules_duration_seconds",
        }
    }

    fn metrics_port(self) -> u16 {
        match self {
            Self::Agent => 10261,
            Self::KubeProxy(_) => 10249,
        }
    }

    fn command(self, cluster: &ControlPlane, directory: &Path) -> Command {
        match self {
            Self::Agent => {
                let program = std::env::var_os("ISP_BENCH_PROGRAM").expect(
                    "`cargo xtask bench dataplane` builds the program as in the images and passes its path",
                );
                let mut command = Command::new(program);
                command.args(["beside", "--serve", "all", "--node-name", NODE]);
                command.env("KUBECONFIG", cluster.kubeconfig());
                command
            }
            Self::KubeProxy(period) => {
                let say = |line: &str| eprintln!("{line}");
                let program = provision::program_of(KubernetesVersion::default(), "kube-proxy", say).unwrap();
                let configuration = json!({
                    "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
                    "kind": "KubeProxyConfiguration",
                    "mode": "nftables",
                    "hostnameOverride": NODE,
                    "clientConnection": {"kubeconfig": cluster.kubeconfig()},
                    "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
                    "nftables": {"minSyncPeriod": period},
                });
                let file = directory.join("kube-proxy.conf");
                fs::write(&file, configuration.to_string()).unwrap();
                let mut command = Command::new(program);
                command.arg(format!("--config={}", file.display()));
                command
            }
        }
    }
}

/// A program that runs.
pub(crate) struct Running {
    proxy: Proxy,
    namespace: Namespace,
    process: Process,
    group: Option<ControlGroup>,
}

/// The number of commits or syncs so far, and the time that they took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Syncs {
    pub(crate) count: f64,
    pub(crate) time: Duration,
}

impl Running {
    pub(crate) fn start(
        proxy: Proxy,
        namespace: &Namespace,
        cluster: &ControlPlane,
        directory: &Path,
    ) -> Self {
        let command = proxy.command(cluster, directory);
        let group = ControlGroup::new(&format!("{}-{proxy:?}", std::process::id()));
        let log = directory.join("log");
        let process = namespace.run(move || Process::start(command, &log));
        let this = Self { proxy, namespace: namespace.clone(), process, group };
        if let (Some(group), Some(pid)) = (&this.group, this.process.pid()) {
            group.add(pid.as_raw());
        }
        this
    }

    fn metrics(&self) -> Option<String> {
        let port = self.proxy.metrics_port();
        self.namespace.run(move || {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
            stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n").ok()?;
            let mut text = String::new();
            stream.read_to_string(&mut text).ok()?;
            Some(text)
        })
    }

    pub(crate) fn syncs(&self) -> Option<Syncs> {
        let (page, name) = (self.metrics()?, self.proxy.metric());
        let seconds = value(&page, &format!("{name}_sum"));
        Some(Syncs { count: value(&page, &format!("{name}_count")), time: Duration::from_secs_f64(seconds) })
    }

    /// Waits for the first sync, but not longer than this.
    pub(crate) async fn first_sync(&mut self, patience: Duration) -> Option<Syncs> {
        let start = Instant::now();
        while start.elapsed() < patience {
            if let Some(ended) = self.process.ended() {
                panic!("{:?} ended: {ended}\n{}", self.proxy, self.process.complained());
            }
            if let Some(syncs) = self.syncs().filter(|syncs| syncs.count > 0.0) {
                return Some(syncs);
            }
            sleep(Duration::from_millis(20)).await;
        }
        None
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> String {
        self.process.complained() + &self.process.printed()
    }

    /// Resident memory now and at most, in megabytes.
    pub(crate) fn resident(&self) -> (f64, f64) {
        let pid = self.process.pid().unwrap();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1000.0
        };
        (field("VmRSS:"), field("VmHWM:"))
    }

    /// Ends the program. Its rules stay in the namespace, and so does their memory in the control
    /// group. Returns it in megabytes.
    pub(crate) async fn end(mut self) -> Option<f64> {
        self.process.kill();
        sleep(Duration::from_secs(2)).await;
        self.group.as_ref()?.kernel_memory()
    }
}

/// The sum of a metric over its labels, without those of IPv6, for which there is nothing to do.
fn value(page: &str, name: &str) -> f64 {
    let lines = page.lines().filter(|line| !line.contains("IPv6"));
    let values = lines.filter_map(|line| {
        let rest = line.strip_prefix(name).filter(|rest| rest.starts_with([' ', '{']))?;
        rest.rsplit(' ').next()?.parse::<f64>().ok()
    });
    values.sum()
}

/// A control group that counts memory of the kernel: `memory.kmem.usage_in_bytes`, or in version 2
/// `kernel` of `memory.stat`.
struct ControlGroup(PathBuf);

impl ControlGroup {
    fn new(name: &str) -> Option<Self> {
        let hierarchy = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].map(Path::new);
        let hierarchy = hierarchy.into_iter().find(|path| path.join("cgroup.procs").exists())?;
        let path = hierarchy.join(format!("isp-bench-{}", name.replace(['(', ')', '"'], "-")));
        fs::create_dir(&path).ok()?;
        Some(Self(path))
    }

    fn add(&self, pid: i32) {
        // Without it, the memory is unknown, and the table says so.
        let _ = fs::write(self.0.join("cgroup.procs"), pid.to_string());
    }

    fn kernel_memory(&self) -> Option<f64> {
        let version_1 = fs::read_to_string(self.0.join("memory.kmem.usage_in_bytes")).ok();
        let bytes = version_1.or_else(|| {
            let stat = fs::read_to_string(self.0.join("memory.stat")).ok()?;
            stat.lines().find_map(|line| line.strip_prefix("kernel ")).map(str::to_owned)
        })?;
        Some(bytes.trim().parse::<f64>().ok()? / 1e6)
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
