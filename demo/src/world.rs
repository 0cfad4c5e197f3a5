//! The demo's cluster: the lab, an application with an external IP, and with Istio a policy on
//! source IPs.

mod objects;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use isp_api::{IngressSourceNode, IngressSourcePreserve};
use isp_lab::topology::{CLIENT, CLIENT_2, EXTERNAL_RANGE, Families, Node};
use isp_lab::{Lab, Place, istio};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

pub(crate) use self::objects::{GUARDED, OPEN};
use crate::screen::Screen;
use crate::story::StoryError;
use crate::table::{Addresses, Asker};
use crate::{Arguments, Mode};

const INGRESS: &str = "edge-1";
/// The node of the source pod and host.
const ASKING: &str = "work-1";
const OTHER: &str = "work-2";
const EXTERNAL: u8 = 10;
/// The namespace of all the demo's objects except the gateway.
pub(crate) const NAMESPACE: &str = "shop";
const ASKING_POD: &str = "asking";
pub(crate) const DEPLOYMENT: &str = "deployment/registry";

/// The cluster, and what depends on whether it has Istio.
pub(crate) struct World {
    pub(crate) lab: Lab,
    /// One set per IP family, in the lab's order.
    pub(crate) addresses: Vec<Addresses>,
    mesh: bool,
}

impl World {
    /// Starts the cluster and the application.
    pub(crate) async fn up(arguments: &Arguments, screen: &Screen) -> Result<Self, StoryError> {
        let mesh = !arguments.no_istio;
        // Prints directly: a function pointer cannot capture the screen.
        let progress = |line: &str| eprintln!("  {line}");
        let lab = Lab::builder()
            .name(&arguments.name)
            .nodes([INGRESS, ASKING, OTHER])
            .proxy_mode(arguments.proxy_mode)
            .istio(mesh)
            .families(arguments.families.families())
            .progress(progress)
            .up()
            .await?;
        screen.say(&format!(
            "  a cluster of three nodes with {}, kube-proxy in mode {}",
            lab.topology().families.names().join(" and "),
            arguments.proxy_mode
        ));
        lab.apply(&objects::application(mesh, ASKING_POD, ASKING, INGRESS, OTHER).to_string()).await?;
        let wait = ["-n", NAMESPACE, "rollout", "status", DEPLOYMENT, "--timeout=180s"];
        lab.kubectl(wait).await?;
        let ready = ["-n", NAMESPACE, "wait", "--for=condition=Ready", "pod", ASKING_POD, "--timeout=60s"];
        lab.kubectl(ready).await?;
        if !mesh {
            give_address(&lab).await?;
        }
        let addresses = addresses(&lab, mesh).await?;
        count_at_the_router(&lab, &addresses).await?;
        Ok(Self { lab, addresses, mesh })
    }

    pub(crate) fn families(&self) -> Families {
        self.lab.topology().families
    }

    pub(crate) fn has_mesh(&self) -> bool {
        self.mesh
    }

    /// The name and file of the demo's object.
    pub(crate) fn sample(&self) -> (&'static str, &'static str) {
        if self.mesh {
            ("istio", "manifests/samples/istio-gateway.yaml")
        } else {
            ("registry", "demo/registry.yaml")
        }
    }

    /// The demo's object, with its mode.
    pub(crate) fn object(&self, mode: Mode) -> Result<Value, StoryError> {
        let (_, file) = self.sample();
        let bad = |problem: String| StoryError::Sample { file, problem };
        let text = std::fs::read_to_string(Self::path(file)).map_err(|error| bad(error.to_string()))?;
        let mut object: Value = serde_yaml::from_str(&text).map_err(|error| bad(error.to_string()))?;
        object["spec"]["mode"] = json!(mode.to_string());
        Ok(object)
    }

    /// The absolute path of a file in the repository.
    pub(crate) fn path(of: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(of)
    }

    pub(crate) fn place(asker: Asker) -> Place {
        match asker {
            Asker::Client => Place::Client,
            Asker::OtherClient => Place::Client2,
            Asker::Pod => Place::Pod(NAMESPACE.to_owned(), ASKING_POD.to_owned()),
            Asker::Host => Place::Node(ASKING.to_owned()),
        }
    }

    pub(crate) fn objects(&self) -> Api<IngressSourcePreserve> {
        Api::all(self.lab.client())
    }

    /// The number of nodes whose agent has acknowledged its view of the object.
    pub(crate) async fn acknowledged(&self) -> Result<usize, StoryError> {
        let reports: Api<IngressSourceNode> = Api::all(self.lab.client());
        let reports = reports.list(&ListParams::default()).await?;
        let name = self.sample().0;
        let acknowledged = reports.iter().filter(|report| {
            let views = report.status.as_ref().map(|status| status.views.as_slice()).unwrap_or_default();
            views.iter().any(|view| view.object == name && view.programmed == Some(true))
        });
        Ok(acknowledged.count())
    }

    /// The number of packets from the source node to the external IP that the router has seen.
    pub(crate) async fn packets_at_the_router(&self) -> Result<u64, StoryError> {
        let list = ["nft", "--json", "list", "counter", "inet", "demo", "asking"];
        let output = self.lab.exec(&Place::Router, &list).await?;
        let printed: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
        let mut listed = printed["nftables"].as_array().into_iter().flatten();
        let packets = listed.find_map(|entry| entry["counter"]["packets"].as_u64());
        packets.ok_or_else(|| StoryError::Router(output.stderr))
    }

    /// Refreshes the addresses: the gateway's pod may have been replaced.
    pub(crate) async fn look_again(&mut self) -> Result<(), StoryError> {
        self.addresses = addresses(&self.lab, self.mesh).await?;
        Ok(())
    }
}

async fn addresses(lab: &Lab, mesh: bool) -> Result<Vec<Addresses>, StoryError> {
    let node = |name: &str| -> Result<&Node, StoryError> {
        lab.topology().node(name).ok_or_else(|| StoryError::Missing(format!("node {name}")))
    };
    let (asking_node, ingress, other) = (node(ASKING)?, node(INGRESS)?, node(OTHER)?);
    let (namespace, service) =
        if mesh { (istio::NAMESPACE, istio::GATEWAY) } else { (NAMESPACE, objects::APPLICATION) };
    let services: Api<Service> = Api::namespaced(lab.client(), namespace);
    let spec = services.get(service).await?.spec.unwrap_or_default();
    let missing = || StoryError::Missing(format!("an address of the Service {namespace}/{service}"));
    let port = spec.ports.iter().flatten().find(|port| port.port == 80).and_then(|port| port.node_port);
    let node_port = port.and_then(|port| u16::try_from(port).ok()).ok_or_else(missing)?;
    let pods: Api<Pod> = Api::namespaced(lab.client(), NAMESPACE);
    let asking = pods.get(ASKING_POD).await?;
    let gateways: Api<Pod> = Api::namespaced(lab.client(), istio::NAMESPACE);
    let gateways = gateways.list(&ListParams::default().labels("istio=ingressgateway")).await?;
    let families = lab.topology().families;
    let cluster_ips: Vec<IpAddr> =
        spec.cluster_ips.iter().flatten().filter_map(|ip| ip.parse().ok()).collect();
    let of_family = |external: IpAddr| {
        let same = move |address: &IpAddr| address.is_ipv4() == external.is_ipv4();
        let first = |list: Vec<IpAddr>| list.into_iter().find(same).ok_or_else(missing);
        let gateway = || gateways.iter().find_map(|pod| addresses_of(pod).into_iter().find(same));
        Ok(Addresses {
            client: first(CLIENT.hosts(EXTERNAL, families))?,
            other_client: first(CLIENT_2.hosts(EXTERNAL, families))?,
            pod: first(addresses_of(&asking))?,
            host: first(asking_node.addresses(families))?,
            ingress_node: first(ingress.addresses(families))?,
            ingress_bridge: first(ingress.pods().hosts(1, families))?,
            other_node: first(other.addresses(families))?,
            external,
            cluster_ip: first(cluster_ips.clone())?,
            node_port,
            gateway: if mesh { Some(gateway().ok_or_else(missing)?) } else { None },
        })
    };
    EXTERNAL_RANGE.hosts(EXTERNAL, families).into_iter().map(of_family).collect()
}

fn addresses_of(pod: &Pod) -> Vec<IpAddr> {
    let running = pod.metadata.deletion_timestamp.is_none();
    let status = pod.status.as_ref().filter(|_| running);
    let listed = status.and_then(|status| status.pod_ips.as_ref()).into_iter().flatten();
    listed.filter_map(|address| address.ip.parse().ok()).collect()
}

/// Gives the application's Service an external IP in each family, as a cloud provider would, and
/// routes it to the ingress node.
async fn give_address(lab: &Lab) -> Result<(), StoryError> {
    let services: Api<Service> = Api::namespaced(lab.client(), NAMESPACE);
    let addresses = EXTERNAL_RANGE.hosts(EXTERNAL, lab.topology().families);
    let ingress: Vec<_> = addresses.iter().map(|address| json!({"ip": address, "ipMode": "VIP"})).collect();
    let status = json!({"status": {"loadBalancer": {"ingress": ingress}}});
    services.patch_status(objects::APPLICATION, &PatchParams::default(), &Patch::Merge(status)).await?;
    for address in addresses {
        lab.route(address, &[INGRESS]).await?;
    }
    Ok(())
}

/// Counts packets at the router, because an answer does not show whether its request passed there.
/// One counter serves all families: requests whose packets are counted run one at a time.
async fn count_at_the_router(lab: &Lab, addresses: &[Addresses]) -> Result<(), StoryError> {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut steps = vec![
        words("add table inet demo"),
        words("add counter inet demo asking"),
        ["add", "chain", "inet", "demo", "seen", "{ type filter hook prerouting priority -300; }"]
            .map(str::to_owned)
            .into(),
    ];
    for Addresses { host, external, .. } in addresses {
        let family = if external.is_ipv6() { "ip6" } else { "ip" };
        steps.push(words(&format!(
            "add rule inet demo seen {family} saddr {host} {family} daddr {external} counter name asking"
        )));
    }
    for step in steps {
        let command: Vec<String> = ["nft".to_owned()].into_iter().chain(step).collect();
        let output = lab.exec(&Place::Router, &command).await?;
        if !output.success {
            return Err(StoryError::Router(output.stderr));
        }
    }
    Ok(())
}
