//! Turns objects into facts, in the same way for a cluster and for a dump.

use std::net::IpAddr;

use isp_api::names::{AGENT_MODE_LABEL, AGENT_NAME, BESIDE_MODE, FAILURE_ANNOTATION, NAME_LABEL};
use isp_api::node::AgentMode;
use isp_api::sidecar::{Labels, Sidecar};
use isp_api::{IngressSourceNode, IngressSourcePreserve};
use isp_plan::observe::runs_kube_proxy;
use isp_plan::plan::can_have_agent;
use isp_plan::{Key, observe};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment as DeploymentObject};
use k8s_openapi::api::core::v1::{
    ConfigMap, Namespace, Node as NodeObject, Pod as PodObject, Service as ServiceObject,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::{Ingress as IngressObject, NetworkPolicy as NetworkPolicyObject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use serde::Deserialize;
use serde_json::Value;

use super::balancer::proxy_annotation;
use super::cluster::{Cluster, Deployment, Node, Pod, Service, System, Webhook};
use super::kinds::Kind;
use super::lists::{Controller, ControllerSettings, Ingress, NetworkPolicy};
use super::mesh::ProxyConfig;
use super::network::{CiliumSettings, Network, NetworkAgent};
use super::policy::AuthorizationPolicy;
use super::ranges::readable;

const ISTIO_PROXY: &str = "istio-proxy";
/// Istio's mark on a pod whose traffic ztunnel intercepts.
const AMBIENT_ANNOTATION: &str = "ambient.istio.io/redirection";
/// An `AuthorizationPolicy` that only logs.
const DRY_RUN_ANNOTATION: &str = "istio.io/dry-run";

impl Cluster {
    /// Takes one object. The error names the field that cannot be parsed. Objects of other projects
    /// may not follow their schema: one that cannot be parsed is recorded, and the others are
    /// judged.
    pub(crate) fn take(&mut self, kind: Kind, object: Value) -> Result<(), serde_json::Error> {
        self.looked_at.insert(kind);
        if !kind.is_foreign() {
            return self.take_known(kind, object);
        }
        let name = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let key = Key::new(name("namespace"), name("name"));
        if let Err(problem) = self.take_foreign(kind, object) {
            self.unreadable.insert((kind, key), problem.to_string());
        }
        Ok(())
    }

    fn take_foreign(&mut self, kind: Kind, object: Value) -> Result<(), serde_json::Error> {
        match kind {
            Kind::AuthorizationPolicy => {
                let dry_run = object["metadata"]["annotations"][DRY_RUN_ANNOTATION] == "true";
                let (key, mut spec): (Key, AuthorizationPolicy) = of_istio(object)?;
                spec.dry_run = dry_run;
                self.policies.insert(key, spec);
            }
            Kind::EnvoyFilter => {
                let (key, spec) = of_istio(object)?;
                self.filters.insert(key, spec);
            }
            Kind::IstioGateway => {
                let (key, spec) = of_istio(object)?;
                self.routes.istio_gateways.insert(key, spec);
            }
            Kind::VirtualService => {
                let (key, spec) = of_istio(object)?;
                self.routes.virtual_services.insert(key, spec);
            }
            Kind::Gateway => {
                let (key, spec) = of_istio(object)?;
                self.routes.gateways.insert(key, spec);
            }
            Kind::HttpRoute | Kind::GrpcRoute | Kind::TlsRoute | Kind::TcpRoute => {
                let (key, spec) = of_istio(object)?;
                self.routes.of_gateway_api.insert((kind, key), spec);
            }
            _ => {}
        }
        Ok(())
    }

    fn take_known(&mut self, kind: Kind, object: Value) -> Result<(), serde_json::Error> {
        match kind {
            Kind::IngressSourcePreserve => {
                let object: IngressSourcePreserve = serde_json::from_value(object)?;
                self.paths.take_object(object.clone());
                self.objects.push(object);
            }
            Kind::IngressSourceNode => {
                let report: IngressSourceNode = serde_json::from_value(object)?;
                self.paths.take_report(report.clone());
                self.reports.insert(report.name_any(), report);
            }
            Kind::Service => {
                let object: ServiceObject = serde_json::from_value(object)?;
                self.paths.take_service(&object);
                self.services.insert(observe::key(&object.metadata), service(object));
            }
            Kind::EndpointSlice => {
                let object: EndpointSlice = serde_json::from_value(object)?;
                self.paths.take_endpoint_slice(&object);
                self.take_endpoints(&object);
            }
            Kind::Node => {
                let object: NodeObject = serde_json::from_value(object)?;
                self.paths.take_node(&object);
                self.nodes.insert(object.name_any(), node(&object));
            }
            Kind::Namespace => {
                let object: Namespace = serde_json::from_value(object)?;
                self.namespaces.insert(object.name_any(), object.metadata.labels.unwrap_or_default());
            }
            Kind::Pod => {
                let object: PodObject = serde_json::from_value(object)?;
                self.paths.take_pod(&object);
                if let Some(pod) = pod(&object) {
                    self.pods.insert(observe::key(&object.metadata), pod);
                }
            }
            Kind::ConfigMap => self.take_config_map(serde_json::from_value(object)?),
            Kind::DaemonSet => {
                let object: DaemonSet = serde_json::from_value(object)?;
                let agent = NetworkAgent::of(&object);
                self.networks.extend(agent.map(|agent| (observe::key(&object.metadata), agent)));
                if let Some(mut facts) = observe::daemon_set(&object) {
                    // A dump lacks managedFields, so labels decide there.
                    let unknown = object.metadata.managed_fields.is_none();
                    facts.made |= unknown && observe::role(&object.metadata).is_some();
                    self.daemon_sets.insert(observe::key(&object.metadata), facts);
                }
            }
            Kind::Deployment => self.take_deployment(serde_json::from_value(object)?),
            Kind::NetworkPolicy => {
                let object: NetworkPolicyObject = serde_json::from_value(object)?;
                let key = observe::key(&object.metadata);
                self.network_policies.extend(NetworkPolicy::of(object).map(|policy| (key, policy)));
            }
            Kind::Ingress => {
                let object: IngressObject = serde_json::from_value(object)?;
                self.ingresses.insert(observe::key(&object.metadata), Ingress::of(&object));
            }
            Kind::MutatingWebhookConfiguration => self.take_mutating(&serde_json::from_value(object)?),
            Kind::ValidatingWebhookConfiguration => self.take_validating(&serde_json::from_value(object)?),
            _ => {}
        }
        Ok(())
    }

    fn take_endpoints(&mut self, object: &EndpointSlice) {
        let Some((service, ready)) = observe::endpoint_slice(object) else { return };
        let addresses = object.endpoints.iter().flatten().filter_map(|endpoint| endpoint.addresses.first());
        let addresses = addresses.filter_map(|address| address.parse::<IpAddr>().ok());
        self.backends.entry(service.clone()).or_default().extend(addresses);
        let known = self.endpoints.entry(service).or_default();
        for (node, count) in ready {
            *known.entry(node).or_default() += count;
        }
    }

    /// Keeps those of meshes, ingress controllers, kube-proxies and Cilium.
    fn take_config_map(&mut self, object: ConfigMap) {
        let key = observe::key(&object.metadata);
        let mut files = object.data.unwrap_or_default();
        if let Some(text) = files.remove("mesh") {
            match serde_yaml::from_str(&text) {
                Ok(mesh) => {
                    self.meshes.insert(key.clone(), mesh);
                }
                Err(problem) => {
                    self.unreadable.insert((Kind::ConfigMap, key.clone()), problem.to_string());
                }
            }
        }
        if let Some(settings) = ControllerSettings::of(&files) {
            self.controllers.insert(key.clone(), settings);
        }
        if key.name == CiliumSettings::MAP {
            self.cilium = Some(CiliumSettings::of(&files));
        }
        files.retain(|_, text| text.contains("KubeProxyConfiguration"));
        if !files.is_empty() {
            self.config_maps.insert(key, files);
        }
    }

    fn take_deployment(&mut self, object: DeploymentObject) {
        let wanted = object.spec.replicas.unwrap_or(1);
        let available = object.status.and_then(|status| status.available_replicas).unwrap_or_default();
        let labels = object.metadata.labels.clone().unwrap_or_default();
        self.deployments.insert(observe::key(&object.metadata), Deployment { labels, wanted, available });
    }

    fn take_mutating(&mut self, object: &MutatingWebhookConfiguration) {
        let entries = object.webhooks.iter().flatten();
        let webhooks = entries.map(|entry| webhook(&entry.name, &entry.client_config)).collect();
        self.mutating.insert(object.name_any(), webhooks);
    }

    fn take_validating(&mut self, object: &ValidatingWebhookConfiguration) {
        let entries = object.webhooks.iter().flatten();
        let webhooks = entries.map(|entry| webhook(&entry.name, &entry.client_config)).collect();
        self.validating.insert(object.name_any(), webhooks);
    }
}

fn of_istio<T: for<'de> Deserialize<'de> + Default>(
    mut object: Value,
) -> Result<(Key, T), serde_json::Error> {
    let metadata: ObjectMeta = serde_json::from_value(object["metadata"].take())?;
    let spec = object["spec"].take();
    let spec = if spec.is_null() { T::default() } else { serde_json::from_value(spec)? };
    Ok((observe::key(&metadata), spec))
}

fn webhook(name: &str, config: &WebhookClientConfig) -> Webhook {
    Webhook {
        name: name.to_owned(),
        service: config.service.as_ref().map(|service| Key::new(&*service.namespace, &*service.name)),
        bundle: config.ca_bundle.as_ref().map(|bundle| bundle.0.clone()).unwrap_or_default(),
    }
}

fn service(object: ServiceObject) -> Service {
    let facts = observe::service(&object);
    let proxied_by = proxy_annotation(object.annotations());
    let ingress = object.status.and_then(|status| status.load_balancer?.ingress).unwrap_or_default();
    Service { facts, spec: object.spec.unwrap_or_default(), ingress, proxied_by }
}

fn node(object: &NodeObject) -> Node {
    let facts = observe::node(object);
    let status = object.status.as_ref();
    let addresses = || status.and_then(|status| status.addresses.as_ref()).into_iter().flatten();
    let internal = addresses().filter(|address| address.type_ == "InternalIP");
    let spec = object.spec.as_ref();
    let ranges = spec.and_then(|spec| spec.pod_cidrs.as_ref()).into_iter().flatten();
    let failed = object.annotations().get(FAILURE_ANNOTATION);
    let beside = can_have_agent(&object.name_any(), &facts);
    Node {
        system: system(object),
        beside,
        networks: Network::of_node(object.annotations()).collect(),
        labels: facts.labels,
        ready: facts.ready,
        addresses: addresses().filter_map(|address| address.address.parse().ok()).collect(),
        internal: internal.filter_map(|address| address.address.parse().ok()).collect(),
        pod_ranges: readable(ranges),
        failure: failed.map(|text| facts.failure.map_or_else(|| text.clone(), |failure| failure.reason)),
    }
}

/// The kubelet also writes two of the fields as labels, which a dump may have without the rest.
fn system(object: &NodeObject) -> System {
    let info = object.status.as_ref().and_then(|status| status.node_info.clone()).unwrap_or_default();
    let or_label = |value: String, label: &str| match object.labels().get(label) {
        Some(label) if value.is_empty() => label.clone(),
        _ => value,
    };
    System {
        os: or_label(info.operating_system, "kubernetes.io/os"),
        architecture: or_label(info.architecture, "kubernetes.io/arch"),
        kernel: info.kernel_version,
        kubelet: info.kubelet_version,
    }
}

/// A pod that is not being deleted.
fn pod(object: &PodObject) -> Option<Pod> {
    let (metadata, spec) = (&object.metadata, object.spec.as_ref()?);
    let phase = object.status.as_ref().and_then(|status| status.phase.as_deref());
    if metadata.deletion_timestamp.is_some() || matches!(phase, Some("Succeeded" | "Failed")) {
        return None;
    }
    let containers = || spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let istio = containers().find(|container| container.name == ISTIO_PROXY);
    let proxy = observe::pod(object).filter(|_| spec.containers.iter().any(runs_kube_proxy));
    let labels: Labels = metadata.labels.clone().unwrap_or_default();
    let agent = agent(&labels);
    let facts = observe::sidecar_pod(object);
    let gateway = istio.is_some_and(|proxy| proxy.args.iter().flatten().take(2).any(|word| word == "router"));
    let annotations = metadata.annotations.clone().unwrap_or_default();
    let mut pod = Pod {
        settings: ProxyConfig::of(&annotations),
        ambient: annotations.get(AMBIENT_ANNOTATION).is_some_and(|value| value == "enabled"),
        annotations,
        addresses: addresses(object),
        sidecar: Sidecar::of(object),
        gateway,
        controller: Controller::of(object),
        host_network: spec.host_network.unwrap_or(false),
        owner: facts.map_or_else(|| ("Pod".to_owned(), object.name_any()), |facts| facts.owner),
        proxy: observe::pod(object).filter(|_| proxy.is_some() || agent.is_some()),
        static_kube_proxy: metadata.owner_references.iter().flatten().any(|owner| owner.kind == "Node")
            && spec.containers.iter().any(runs_kube_proxy),
        agent,
        labels,
    };
    if !pod.has_proxy() {
        // Most pods need only a few facts.
        pod.annotations = Labels::new();
    }
    Some(pod)
}

/// The mode of the agent in a pod with these labels.
fn agent(labels: &Labels) -> Option<AgentMode> {
    labels.get(NAME_LABEL).filter(|name| *name == AGENT_NAME)?;
    let is_beside = labels.get(AGENT_MODE_LABEL).is_some_and(|mode| mode == BESIDE_MODE);
    Some(if is_beside { AgentMode::Beside } else { AgentMode::Filter })
}

fn addresses(object: &PodObject) -> Vec<IpAddr> {
    let ips = object.status.as_ref().and_then(|status| status.pod_ips.as_ref()).into_iter().flatten();
    ips.filter_map(|ip| ip.ip.parse().ok()).collect()
}
