//! The facts about the Service that is probed, read from the cluster.

use std::collections::{BTreeMap, BTreeSet};

use isp_api::IngressSourcePreserve;
use isp_api::age::by_age;
use isp_api::claims::{ServiceIdentity, claims};
use isp_api::view::is_taken_over;
use isp_plan::Key;
use k8s_openapi::api::core::v1::{Node, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::ProbeError;
use super::canary::{self, Treatment};
use super::nodes::Candidate;
use super::pods::KIND;
use crate::connection::Connection;
use crate::error::CommandError;
use crate::read;

/// The label by which a slice names its Service.
pub(crate) const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";

/// The Service, and what a probe depends on.
pub(crate) struct Subject {
    pub(crate) key: Key,
    pub(crate) service: Service,
    pub(crate) nodes: Vec<Node>,
    /// The Services of the same namespace.
    pub(crate) neighbours: Vec<Service>,
    /// The nodes with a ready endpoint.
    pub(crate) endpoint_nodes: BTreeSet<String>,
    /// The pods behind the Service.
    pub(crate) pods: BTreeSet<String>,
    objects: Vec<IngressSourcePreserve>,
}

/// Reads the Service that the user names, else the only one that an object preserves.
pub(crate) async fn read(connection: &Connection, asked: Option<&Key>) -> Result<Subject, CommandError> {
    let client = &connection.client;
    let objects = match read::all(connection, Api::all(client.clone()), ListParams::default()).await {
        Ok(objects) => objects,
        // A cluster on which the project is not installed can be probed as well.
        Err(CommandError::NotInstalled) => Vec::new(),
        Err(error) => return Err(error),
    };
    let key = match asked {
        Some(key) => key.clone(),
        None => choose(connection, &objects).await?,
    };
    let neighbours: Vec<Service> =
        read::all(connection, Api::namespaced(client.clone(), &key.namespace), ListParams::default()).await?;
    let service = neighbours.iter().find(|service| service.name_any() == key.name).cloned();
    let service = service.ok_or_else(|| CommandError::NoService(key.clone()))?;
    let nodes = read::all(connection, Api::all(client.clone()), ListParams::default()).await?;
    let slices = slices(connection, &key).await?;
    let ready = || {
        slices.iter().flat_map(|slice| slice.endpoints.iter().flatten()).filter(|endpoint| is_ready(endpoint))
    };
    let endpoint_nodes = ready().filter_map(|endpoint| endpoint.node_name.clone()).collect();
    let targets = ready().filter_map(|endpoint| endpoint.target_ref.as_ref());
    let pods = targets.filter(|target| target.kind.as_deref() == Some("Pod"));
    let pods = pods.filter_map(|target| target.name.clone()).collect();
    Ok(Subject { key, service, nodes, neighbours, endpoint_nodes, pods, objects })
}

/// The EndpointSlices of a Service.
pub(crate) async fn slices(
    connection: &Connection,
    service: &Key,
) -> Result<Vec<EndpointSlice>, CommandError> {
    let api = Api::namespaced(connection.client.clone(), &service.namespace);
    let own = ListParams::default().labels(&format!("{SERVICE_NAME_LABEL}={}", service.name));
    read::all(connection, api, own).await
}

pub(crate) fn is_ready(endpoint: &Endpoint) -> bool {
    endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) != Some(false)
}

/// The only Service that an object preserves.
async fn choose(connection: &Connection, objects: &[IngressSourcePreserve]) -> Result<Key, CommandError> {
    let services: Vec<Service> =
        read::all(connection, Api::all(connection.client.clone()), ListParams::default()).await?;
    let none = BTreeMap::new();
    let identity = |service: &'_ Service| (service.namespace().unwrap_or_default(), service.name_any());
    let names: Vec<(String, String)> = services.iter().map(identity).collect();
    let identities: Vec<ServiceIdentity<'_>> = services
        .iter()
        .zip(&names)
        .map(|(service, (namespace, name))| ServiceIdentity {
            namespace,
            name,
            labels: service.metadata.labels.as_ref().unwrap_or(&none),
        })
        .collect();
    let objects: Vec<&IngressSourcePreserve> = by_age(objects);
    let claimed = claims(&objects, &identities);
    let mut owned = claimed.claimed.iter().flat_map(|claimed| &claimed.services);
    if let (Some(&only), None) = (owned.next(), owned.next()) {
        let (namespace, name) = names[only].clone();
        return Ok(Key::new(namespace, name));
    }
    let exposed = services.iter().zip(&names).filter(|(service, _)| is_exposed(service));
    let exposed = exposed.map(|(_, (namespace, name))| format!("{namespace}/{name}"));
    Err(ProbeError::NoChoice(exposed.collect()).into())
}

fn is_exposed(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    let is_of_type = |spec: &k8s_openapi::api::core::v1::ServiceSpec| {
        matches!(spec.type_.as_deref(), Some("LoadBalancer" | "NodePort"))
    };
    spec.is_some_and(|spec| is_of_type(spec) || spec.external_ips.as_ref().is_some_and(|ips| !ips.is_empty()))
}

impl Subject {
    /// The nodes to choose from.
    pub(crate) fn candidates(&self) -> Vec<Candidate> {
        let none = BTreeMap::new();
        let candidate = |node: &Node| {
            let name = node.name_any();
            let labels = node.metadata.labels.as_ref().unwrap_or(&none);
            let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
            let selects =
                |object: &IngressSourcePreserve| object.spec.ingress_nodes.contains(labels).unwrap_or(false);
            Candidate {
                ready: conditions
                    .into_iter()
                    .any(|condition| condition.type_ == "Ready" && condition.status == "True"),
                ingress: self.objects.iter().any(selects),
                has_endpoint: self.endpoint_nodes.contains(&name),
                linux: labels.get("kubernetes.io/os").is_none_or(|os| os == "linux"),
                name,
            }
        };
        self.nodes.iter().map(candidate).collect()
    }

    /// Whether a canary is treated as the Service is, and the labels that it must have for that.
    pub(crate) fn canary(&self, name: &str) -> (Treatment, BTreeMap<String, String>) {
        let objects: Vec<&IngressSourcePreserve> = by_age(&self.objects);
        let labels = |by_operator, key: Option<&str>| canary::labels(&KIND, &self.service, key, by_operator);
        let none = BTreeMap::new();
        let own = self.service.metadata.labels.as_ref().unwrap_or(&none);
        // Selectors see the labels that the operator does not write.
        let selected = labels(true, None);
        let identity = |name, labels| ServiceIdentity { namespace: &self.key.namespace, name, labels };
        let identities = [identity(self.key.name.as_str(), own), identity(name, &selected)];
        let claimed = claims(&objects, &identities);
        let owner = |service: usize| {
            let place = claimed.claimed.iter().position(|claimed| claimed.services.contains(&service));
            place.and_then(|place| objects.get(place)).copied()
        };
        let of_service = owner(0);
        let names = (of_service.map(ResourceExt::name_any), owner(1).map(ResourceExt::name_any));
        let beside = of_service.is_some_and(IngressSourcePreserve::is_served_beside);
        let treatment = canary::treatment(
            names.0.as_deref().map(|name| (name, beside)),
            names.1.as_deref(),
            is_taken_over(own),
        );
        let by_operator = matches!(treatment, Treatment::ByOperator { .. });
        let key = of_service.map(|object| object.service_label().key);
        (treatment, labels(by_operator, key.as_deref()))
    }
}
