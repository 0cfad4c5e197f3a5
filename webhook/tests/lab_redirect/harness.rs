//! A cluster of two nodes with this project and the images of the proxies, and a terminal to type
//! the docs' commands in.

use std::net::IpAddr;
use std::path::Path;

use isp_lab::docs::{Block, Terminal};
use isp_lab::topology::{self, Families};
use isp_lab::{EchoApp, Lab, Place, proxies};
use isp_testkit::sidecars::Counts;
use isp_testkit::{repository, until};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

const NODES: [&str; 2] = ["edge-1", "work-1"];
const NAMESPACE: &str = "own-proxy";
const OBJECT: &str = "own-proxy";
const WEBHOOK: &str = env!("CARGO_BIN_EXE_webhook");

/// One of the applications of the docs.
pub(crate) struct Proxy {
    /// The name of the Deployment, of the Service, and of the proxy's process.
    pub(crate) name: &'static str,
    pub(crate) node_port: u16,
    /// The capabilities that the manifest gives its container.
    pub(crate) capabilities: u64,
    /// The header that it adds to requests of its application, if it gets them, by IPv4 and by
    /// IPv6.
    pub(crate) outbound: [Option<&'static str>; 2],
    /// The part of its configuration by which it connects with the client's address.
    pub(crate) binds_client: &'static str,
}

const CHOWN: u64 = 1;
const SETGID: u64 = 1 << 6;
const SETUID: u64 = 1 << 7;
const NET_RAW: u64 = 1 << 13;

pub(crate) const PROXIES: [Proxy; 3] = [
    Proxy {
        name: "nginx",
        node_port: 30081,
        capabilities: CHOWN | SETGID | SETUID | NET_RAW,
        outbound: [None; 2],
        binds_client: "  proxy_bind $remote_addr transparent;\n",
    },
    Proxy {
        name: "envoy",
        node_port: 30082,
        capabilities: NET_RAW,
        outbound: [Some("envoy on the way out"); 2],
        binds_client: r#"    - name: original_src
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.listener.original_src.v3.OriginalSrc
"#,
    },
    Proxy {
        name: "haproxy",
        node_port: 30083,
        capabilities: NET_RAW,
        outbound: [Some("haproxy on the way out"), None],
        binds_client: "  source 0.0.0.0 usesrc clientip\n",
    },
];

pub(crate) struct World {
    pub(crate) lab: Lab,
    terminal: Terminal,
}

fn say(line: &str) {
    eprintln!("{line}");
}

impl World {
    /// A cluster with the project, and a pod without a proxy on the other node.
    pub(crate) async fn up(name: &str) -> Self {
        let lab = Lab::builder().name(name).nodes(NODES).families(Families::Dual).up().await.unwrap();
        let program = Path::new(WEBHOOK);
        lab.load_program(&program.with_file_name("pod-redirect")).await.unwrap();
        let archives = tokio::task::spawn_blocking(|| {
            [
                proxies::nginx("docker.io/library/nginx:1.28", say).unwrap(),
                proxies::envoy("docker.io/envoyproxy/envoy:v1.40.0", say).unwrap(),
                proxies::haproxy("docker.io/library/haproxy:3.2", say).unwrap(),
            ]
        });
        for archive in archives.await.unwrap() {
            lab.load_image(&archive).await.unwrap();
        }
        lab.install_project(program, &repository::file("manifests/overlays/lab")).await.unwrap();
        let other = EchoApp {
            name: "other",
            namespace: "default",
            node: NODES[1],
            node_port: 30090,
            annotations: &[],
        };
        lab.run_echo(&other).await.unwrap();
        let terminal = Terminal::open(&lab.kubeconfig(), &[&lab.program("kubectl").unwrap()]).unwrap();
        Self { lab, terminal }
    }

    /// Runs a block of the docs and returns what it prints.
    pub(crate) async fn run(&self, block: &Block) -> String {
        self.terminal.run(block).await.unwrap().stdout
    }

    /// Runs `kubectl` in the namespace of the applications and returns what it prints.
    pub(crate) async fn kubectl<const N: usize>(&self, arguments: [&str; N]) -> String {
        let mut command = self.lab.kubectl_command();
        command.args(["-n", NAMESPACE]).args(arguments);
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Recreates the pod of an application and waits until only the new one is left.
    pub(crate) async fn restart(&self, proxy: &Proxy) {
        let deployment = format!("deployment/{}", proxy.name);
        self.kubectl(["rollout", "restart", &deployment]).await;
        self.kubectl(["rollout", "status", &deployment, "--timeout=120s"]).await;
    }

    /// Takes a part out of the configuration of a proxy, which only reads it when it starts.
    pub(crate) async fn unconfigure(&self, proxy: &Proxy, part: &str) {
        let maps: Api<ConfigMap> = Api::namespaced(self.lab.client(), NAMESPACE);
        let found = maps.list(&ListParams::default()).await.unwrap();
        // Kustomize appends a digest to the name.
        let prefix = format!("{}-", proxy.name);
        let is_its = |map: &&ConfigMap| map.metadata.name.as_ref().unwrap().starts_with(&prefix);
        let map = found.iter().find(is_its).unwrap();
        let (file, text) = map.data.as_ref().unwrap().first_key_value().unwrap();
        assert_eq!(text.matches(part).count(), 1, "{part:?} is in {file} once");
        let patch = Patch::Merge(json!({"data": {file: text.replace(part, "")}}));
        maps.patch(map.metadata.name.as_ref().unwrap(), &PatchParams::default(), &patch).await.unwrap();
    }

    /// The only pod of an application. A replaced one has gone.
    pub(crate) async fn pod(&self, proxy: &Proxy) -> Pod {
        let pods: Api<Pod> = Api::namespaced(self.lab.client(), NAMESPACE);
        until("an application has one pod", async || {
            let found =
                pods.list(&ListParams::default().labels(&format!("app={}", proxy.name))).await.unwrap();
            match <[Pod; 1]>::try_from(found.items) {
                Ok([pod]) => Ok(pod),
                Err(other) => Err(other.len()),
            }
        })
        .await
    }

    /// The network of an application's pod.
    pub(crate) async fn place(&self, proxy: &Proxy) -> Place {
        Place::Pod(NAMESPACE.to_owned(), self.pod(proxy).await.metadata.name.unwrap())
    }

    /// The addresses of a pod, one of each family.
    pub(crate) fn addresses(pod: &Pod) -> Vec<IpAddr> {
        let addresses = pod.status.iter().flat_map(|status| &status.pod_ips).flatten();
        addresses.map(|address| address.ip.parse().unwrap()).collect()
    }

    /// The pod on the other node, as a place and with its addresses.
    pub(crate) async fn other(&self) -> (Place, Vec<IpAddr>) {
        let pod = Api::<Pod>::namespaced(self.lab.client(), "default").get("other").await.unwrap();
        (Place::Pod("default".to_owned(), "other".to_owned()), Self::addresses(&pod))
    }

    /// The addresses of the client outside, one of each family.
    pub(crate) fn client() -> Vec<IpAddr> {
        topology::CLIENT.hosts(10, Families::Dual)
    }

    /// The addresses of the ingress node, one of each family.
    pub(crate) fn ingress(&self) -> Vec<IpAddr> {
        self.lab.topology().node(NODES[0]).unwrap().addresses(Families::Dual)
    }

    /// Waits until the status counts all applications, and this many of them as redirected.
    pub(crate) async fn expect_redirected(&self, what: &str, consistent: u32) {
        let matching = u32::try_from(PROXIES.len()).unwrap();
        Counts { matching, consistent }.expect(what, &self.lab, OBJECT).await;
    }
}
