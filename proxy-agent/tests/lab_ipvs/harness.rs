//! A lab with two Services on its ingress node, and a virtual machine that is registered as a node.
//! kube-proxy and the agent run in it as plain processes.

use std::net::IpAddr;
use std::time::Duration;

use isp_api::IngressSourceNode;
use isp_lab::{Answer, EchoApp, Lab, Protocol, Vm};
use isp_testkit::Patience;
use isp_testkit::preserve::install;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

/// Generous, because an emulated CPU on a busy machine is slow.
pub(crate) const PATIENCE: Patience =
    Patience { limit: Duration::from_mins(3), pause: Duration::from_millis(500) };
const NODE: &str = "vm-1";

/// The Service `narrowed` has one address in its spec and one in its status. The Service `hidden`
/// has one in its spec.
pub(crate) const NARROWED: [&str; 2] = ["192.0.2.50", "192.0.2.51"];
pub(crate) const HIDDEN: &str = "192.0.2.52";

const ORIGINAL: &str = "/var/lib/kube-proxy/kubeconfig.conf";
const SERVING: &str = "/var/lib/proxy-agent";

/// Starts the lab. The router sends the external addresses of its Services to the ingress node.
pub(crate) async fn lab(name: &str) -> Lab {
    let lab = Lab::builder().name(name).nodes(["edge-1"]).up().await.unwrap();
    install(&lab).await;
    for (name, node_port) in [("narrowed", 30080), ("hidden", 30090)] {
        let app = EchoApp { name, namespace: "default", node: "edge-1", node_port, annotations: &[] };
        lab.run_echo(&app).await.unwrap();
    }
    let services: Api<Service> = Api::namespaced(lab.client(), "default");
    let patch = PatchParams::default();
    for (name, address) in [("narrowed", NARROWED[0]), ("hidden", HIDDEN)] {
        let spec = json!({
            "type": "LoadBalancer",
            "externalIPs": [address],
            "externalTrafficPolicy": "Local",
            // In ipvs mode kube-proxy runs one or two programs per port.
            "ports": [{"name": "http", "port": 80, "targetPort": 8080}],
        });
        services.patch(name, &patch, &Patch::Merge(json!({"spec": spec}))).await.unwrap();
    }
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": NARROWED[1], "ipMode": "VIP"}]}}});
    services.patch_status("narrowed", &patch, &Patch::Merge(status)).await.unwrap();
    for address in NARROWED.into_iter().chain([HIDDEN]) {
        lab.route(address.parse().unwrap(), &["edge-1"]).await.unwrap();
    }
    lab
}

pub(crate) async fn cluster_ip(lab: &Lab, service: &str) -> String {
    let services: Api<Service> = Api::namespaced(lab.client(), "default");
    services.get(service).await.unwrap().spec.unwrap().cluster_ip.unwrap()
}

/// Waits until the machine's agent has acknowledged this many objects with `programmed`; otherwise
/// prints its report.
pub(crate) async fn expect_acknowledged(lab: &Lab, objects: usize) {
    let nodes: Api<IngressSourceNode> = Api::all(lab.client());
    PATIENCE
        .until(&format!("{objects} acknowledged objects"), async || {
            let status = nodes.get_opt(NODE).await.unwrap().and_then(|node| node.status);
            let acknowledged = status.as_ref().is_some_and(|status| {
                let all = status.views.iter().all(|view| view.received && view.programmed == Some(true));
                status.active && status.views.len() == objects && all
            });
            if acknowledged { Ok(()) } else { Err(status) }
        })
        .await;
}

/// A node in a virtual machine.
pub(crate) struct Machine<'a>(Vm<'a>);

impl<'a> Machine<'a> {
    pub(crate) async fn boot(lab: &'a Lab) -> Self {
        register(lab).await;
        let kube_proxy_token = token(lab, "kube-proxy").await;
        let agent_token = token(lab, "proxy-agent").await;
        let vm = Vm::builder(NODE)
            .program(lab.program("kube-proxy").unwrap(), "/usr/local/bin/kube-proxy")
            .program(env!("CARGO_BIN_EXE_proxy-agent"), "/usr/local/bin/proxy-agent")
            .file(ORIGINAL, kubeconfig(lab, &kube_proxy_token).to_string())
            .file("/etc/kube-proxy/direct.conf", configuration(ORIGINAL).to_string())
            .file(
                format!("{SERVING}/behind.conf"),
                configuration(&format!("{SERVING}/kubeconfig.conf")).to_string(),
            )
            .file("/etc/proxy-agent/token", agent_token)
            .boot(lab)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        tell_address(lab, vm.address()).await;
        Self(vm)
    }

    /// Starts the stock kube-proxy, as the cluster has it.
    pub(crate) async fn start_direct(&self) {
        self.0.start("kube-proxy", &["kube-proxy", "--config=/etc/kube-proxy/direct.conf"]).await.unwrap();
    }

    /// Stops kube-proxy and starts another one behind an agent. The new one cleans up the rules of
    /// the old one.
    pub(crate) async fn hand_over_to_the_agent(&self) {
        self.0.stop("kube-proxy").await.unwrap();
        let arguments = [
            "proxy-agent",
            "filter",
            &format!("--node-name={NODE}"),
            &format!("--kube-proxy-kubeconfig={ORIGINAL}"),
            &format!("--serving-directory={SERVING}"),
            "--token-file=/etc/proxy-agent/token",
        ];
        self.0.start("proxy-agent", &arguments).await.unwrap();
        PATIENCE
            .until("the agent serves", async || {
                let console = self.0.console();
                if console.contains("serving kube-proxy") { Ok(()) } else { Err(console) }
            })
            .await;
        let flag = format!("--config={SERVING}/behind.conf");
        self.0.start("kube-proxy", &["kube-proxy", &flag]).await.unwrap();
    }

    /// Stops both, and checks that neither has restarted.
    pub(crate) async fn stop_both(&self) {
        self.0.stop("kube-proxy").await.unwrap();
        self.0.stop("proxy-agent").await.unwrap();
    }

    /// Waits until exactly the wanted addresses of these are bound to the machine; otherwise prints
    /// the bound ones.
    pub(crate) async fn expect_bound(&self, what: &str, wanted: &[&str], others: &[&str]) {
        PATIENCE
            .until(&format!("{what}: {wanted:?} and not {others:?}"), async || {
                let listed =
                    self.0.run(&["ip", "-oneline", "address", "show", "dev", "kube-ipvs0"]).await.unwrap();
                let bound = |address: &&str| listed.stdout.contains(&format!(" {address}/32 "));
                let all = listed.success && wanted.iter().all(bound) && !others.iter().any(bound);
                if all { Ok(()) } else { Err(listed) }
            })
            .await;
    }

    /// Checks that traffic from the machine to the address enters through the ingress node, like
    /// everyone's.
    pub(crate) async fn reaches_the_ingress_node(&self, address: &str) {
        let own = self.0.address();
        PATIENCE
            .until(&format!("{address} leads to the ingress node"), async || match self.ask(address).await {
                Answer::Seen(seen) if seen.peer_ip == own && seen.node == "edge-1" => Ok(()),
                other => Err(other),
            })
            .await;
    }

    /// Returns the application's answer on port 80 of an address.
    pub(crate) async fn ask(&self, address: &str) -> Answer {
        self.0.ask(Protocol::Http, &format!("{address}:80")).await.unwrap()
    }
}

/// Creates a token that is bound to the node, as the kubelet's are.
async fn token(lab: &Lab, account: &str) -> String {
    let bound = ["--bound-object-kind=Node", "--bound-object-name", NODE];
    let create =
        ["-n", "kube-system", "create", "token", account, "--duration=4h", bound[0], bound[1], bound[2]];
    let token = lab.kubectl(create).await.unwrap();
    token.stdout.trim().to_owned()
}

fn kubeconfig(lab: &Lab, token: &str) -> Value {
    let authority = std::fs::read(lab.authority()).unwrap();
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "default", "cluster": {
            "server": lab.server(),
            "certificate-authority-data": k8s_openapi::ByteString(authority),
        }}],
        "users": [{"name": "default", "user": {"token": token}}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
        "current-context": "default",
    })
}

fn configuration(kubeconfig: &str) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "ipvs",
        "clusterCIDR": "10.244.0.0/16",
        "hostnameOverride": NODE,
        "clientConnection": {"kubeconfig": kubeconfig},
    })
}

/// Registers the node as the kubelet would, but without labels, so that no DaemonSet runs a pod
/// there.
async fn register(lab: &Lab) {
    let nodes: Api<Node> = Api::all(lab.client());
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}});
    nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
}

async fn tell_address(lab: &Lab, address: IpAddr) {
    let nodes: Api<Node> = Api::all(lab.client());
    let status = json!({"status": {"addresses": [{"type": "InternalIP", "address": address}]}});
    nodes.patch_status(NODE, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}
