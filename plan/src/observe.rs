//! Converts Kubernetes objects into facts. Content that cannot be parsed is treated as absent. The
//! API server has validated everything except annotations, which anyone can write.

mod annotations;
mod kube_proxy;
pub(crate) mod mounts;

use std::collections::BTreeMap;
use std::sync::Arc;

use isp_api::IngressSourceNode;
use isp_api::names::{
    AGENT_IMAGES_LABEL, AGENT_MODE_LABEL, AGENT_NAME, AGENT_POOL_LABEL, AGENT_REVISION_LABEL, BESIDE_MODE,
    BESIDE_NAME, FAILURE_ANNOTATION, HANDOVER_ANNOTATION, IMAGES_NAME, INTERCEPTION_MODE_ANNOTATION,
    NAME_LABEL, OPERATOR_FIELD_MANAGER,
};
use isp_api::node::AcknowledgedView;
use isp_api::preserve::TrafficPolicy;
use isp_api::sidecar::redirect::{self, Shape};
use isp_api::sidecar::{Labels, PROXY_CONFIG_ANNOTATION, Sidecar};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::DaemonSet as DaemonSetObject;
use k8s_openapi::api::core::v1::{
    ConfigMap, ContainerState, ContainerStateTerminated, ContainerStatus, Node as NodeObject,
    Pod as PodObject, Service as ServiceObject,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DynamicObject;
use serde_json::Value;

pub(crate) use self::kube_proxy::{HOME, recognised};
pub use self::kube_proxy::{
    KubeProxySource, NoKubeProxy, changed, flag, kube_proxies, kube_proxy, made, mounted_file,
    runs_kube_proxy,
};
use crate::cluster::{
    Acknowledged, Acknowledgements, DaemonSet, Identity, Key, LastApplied, Node, Pod, PodRole, RedirectPod,
    Report, Service, SidecarPod, Taint, Written,
};
use crate::own::content;
use crate::ownership::{last_applied, owners};

#[cfg(test)]
mod tests;

/// Namespace and name of an object.
pub fn key(metadata: &ObjectMeta) -> Key {
    Key::new(metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

pub(crate) fn identity(metadata: &ObjectMeta) -> Identity {
    Identity {
        uid: metadata.uid.clone().unwrap_or_default(),
        version: metadata.resource_version.clone().unwrap_or_default(),
    }
}

/// Converts a Service.
pub fn service(object: &ServiceObject) -> Service {
    let metadata = &object.metadata;
    let spec = object.spec.clone().unwrap_or_default();
    let external = spec.external_ips.unwrap_or_default();
    let ingress = object.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let ingress = ingress.and_then(|balancer| balancer.ingress.as_ref()).into_iter().flatten();
    let mut addresses: Vec<String> =
        ingress.filter_map(|ingress| ingress.ip.clone().or_else(|| ingress.hostname.clone())).collect();
    let exposed = matches!(spec.type_.as_deref(), Some("NodePort" | "LoadBalancer")) || !external.is_empty();
    addresses.extend(external);
    let applied = last_applied(metadata.annotations.as_ref()).unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Service {
        identity: identity(metadata),
        labels: metadata.labels.clone().unwrap_or_default(),
        record: annotations::service_record(metadata),
        exposed,
        balanced: spec.type_.as_deref() == Some("LoadBalancer"),
        policy: match spec.external_traffic_policy.as_deref() {
            Some("Local") => Some(TrafficPolicy::Local),
            Some(_) => Some(TrafficPolicy::Cluster),
            None => None,
        },
        health_check_node_port: spec.health_check_node_port.filter(|port| *port != 0),
        addresses,
        owners: owners(metadata.managed_fields.as_ref(), &["f:spec", "f:externalTrafficPolicy"]),
        last_applied: LastApplied {
            policy: applied.pointer("/spec/externalTrafficPolicy").and_then(text),
            labels: applied
                .pointer("/metadata/labels")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
                .filter_map(|(key, value)| Some((key.clone(), text(value)?)))
                .collect(),
        },
        deleting: metadata.deletion_timestamp.is_some(),
    }
}

/// The Service of an EndpointSlice, and its ready endpoints by node.
pub fn endpoint_slice(object: &EndpointSlice) -> Option<(Key, BTreeMap<String, u32>)> {
    let service = object.metadata.labels.as_ref()?.get("kubernetes.io/service-name")?;
    let mut ready = BTreeMap::new();
    for endpoint in object.endpoints.iter().flatten() {
        let conditions = endpoint.conditions.as_ref();
        // Unknown counts as ready, as in kube-proxy.
        if conditions.and_then(|conditions| conditions.ready).unwrap_or(true)
            && let Some(node) = &endpoint.node_name
        {
            *ready.entry(node.clone()).or_default() += 1;
        }
    }
    Some((Key::new(object.metadata.namespace.clone()?, service.clone()), ready))
}

/// Converts a node.
pub fn node(object: &NodeObject) -> Node {
    let metadata = &object.metadata;
    let conditions = object.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let labels = metadata.labels.clone().unwrap_or_default();
    let owners = owners(metadata.managed_fields.as_ref(), &["-"]);
    let ours = |key: &str| {
        let owned = owners.iter().any(|owner| owner.is_us() && owner.labels.contains(key));
        labels.get(key).filter(|_| owned).cloned()
    };
    // The operator could not remove annotations that it does not own, so they are ignored.
    let own_annotation =
        |key: &str| owners.iter().any(|owner| owner.is_us() && owner.annotations.contains(key));
    let taints = object.spec.as_ref().and_then(|spec| spec.taints.as_ref()).into_iter().flatten();
    Node {
        identity: identity(metadata),
        ready,
        taints: taints
            .map(|taint| Taint {
                key: taint.key.clone(),
                value: taint.value.clone().unwrap_or_default(),
                effect: taint.effect.clone(),
            })
            .collect(),
        pool: ours(AGENT_POOL_LABEL),
        revision: ours(AGENT_REVISION_LABEL),
        images: ours(AGENT_IMAGES_LABEL),
        labels,
        handover: annotations::handover(metadata).filter(|_| own_annotation(HANDOVER_ANNOTATION)),
        failure: annotations::failure(metadata).filter(|_| own_annotation(FAILURE_ANNOTATION)),
    }
}

/// Converts the report of a node's agent. Equal acknowledgements share one allocation through
/// `known`.
pub fn report(object: &IngressSourceNode, known: &mut Vec<Arc<Acknowledgements>>) -> Report {
    let status = object.status.as_ref();
    let views = status.into_iter().flat_map(|status| &status.views);
    // Views that the kernel demonstrably has not applied yet do not count. If that is unknown, the
    // agent's report is trusted.
    let services = |view: &AcknowledgedView| {
        let parts = view.services.iter().filter_map(|name| name.split_once('/'));
        parts.map(|(namespace, name)| Key::new(namespace, name)).collect()
    };
    let acknowledged: Acknowledgements = views
        .filter(|view| view.received && view.programmed != Some(false))
        .map(|view| {
            let (generation, services) = (view.generation, services(view));
            (view.uid.clone(), Acknowledged { generation, view: view.view, services })
        })
        .collect();
    known.retain(|known| Arc::strong_count(known) > 1);
    let shared = known.iter().find(|known| ***known == acknowledged).cloned();
    let acknowledged = shared.unwrap_or_else(|| {
        let new = Arc::new(acknowledged);
        known.push(new.clone());
        new
    });
    Report {
        identity: identity(&object.metadata),
        mode: status.map(|status| status.mode).unwrap_or_default(),
        pool: status.map(|status| status.pool.clone()).unwrap_or_default(),
        revision: status.map(|status| status.revision.clone()).unwrap_or_default(),
        active: status.is_some_and(|status| status.active),
        served: status.and_then(|status| status.served).unwrap_or_default(),
        acknowledged,
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// Converts a DaemonSet that runs kube-proxy or that the operator created.
pub fn daemon_set(object: &DaemonSetObject) -> Option<DaemonSet> {
    let metadata = &object.metadata;
    let pod = object.spec.template.spec.as_ref()?;
    let required = format!("f:{REQUIRED}");
    let path = ["f:spec", "f:template", "f:spec", "f:affinity", "f:nodeAffinity", required.as_str()];
    let owners = owners(metadata.managed_fields.as_ref(), &path);
    let made = role(metadata).is_some_and(|role| metadata.name.as_ref() == Some(&name_of(&role, metadata)))
        && owners.iter().any(|owner| owner.is_us() && owner.labels.contains(NAME_LABEL));
    if !made && !pod.containers.iter().any(runs_kube_proxy) {
        return None;
    }
    let mut slim = object.clone();
    slim.metadata.managed_fields = None;
    if let Some(annotations) = &mut slim.metadata.annotations {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
    Some(DaemonSet {
        identity: identity(metadata),
        owners,
        made,
        last_writer: last_writer(metadata),
        record: annotations::affinity_record(metadata),
        object: slim,
    })
}

/// The field manager that last wrote an object, besides the operator and writers of subresources.
fn last_writer(metadata: &ObjectMeta) -> Option<String> {
    let entries = metadata.managed_fields.iter().flatten();
    let others = entries.filter(|entry| {
        entry.subresource.is_none() && entry.manager.as_deref() != Some(OPERATOR_FIELD_MANAGER)
    });
    others.max_by_key(|entry| entry.time.as_ref().map(|time| time.0))?.manager.clone()
}

/// The role of one of our DaemonSets or of its pods, by the labels.
pub fn role(metadata: &ObjectMeta) -> Option<PodRole> {
    let labels = metadata.labels.as_ref()?;
    let name = labels.get(NAME_LABEL).map(String::as_str);
    if name == Some(AGENT_NAME) && labels.get(AGENT_MODE_LABEL).is_some_and(|mode| mode == BESIDE_MODE) {
        return Some(PodRole::Beside);
    }
    let revision = labels.get(AGENT_REVISION_LABEL)?.clone();
    let pool = labels.get(AGENT_POOL_LABEL)?.clone();
    match name {
        Some(AGENT_NAME) => Some(PodRole::Agent { pool, revision }),
        Some(IMAGES_NAME) => Some(PodRole::Images { revision }),
        _ => None,
    }
}

/// The name of the DaemonSet with this role.
fn name_of(role: &PodRole, metadata: &ObjectMeta) -> String {
    match role {
        PodRole::Agent { pool, revision } => format!("{AGENT_NAME}-{pool}-{revision}"),
        PodRole::Beside => BESIDE_NAME.to_owned(),
        PodRole::Images { revision } => {
            let pool = metadata.labels.as_ref().and_then(|labels| labels.get(AGENT_POOL_LABEL));
            format!("{IMAGES_NAME}-{}-{revision}", pool.map(String::as_str).unwrap_or_default())
        }
    }
}

/// Converts a pod of a DaemonSet.
pub fn pod(object: &PodObject) -> Option<Pod> {
    let owners = object.metadata.owner_references.iter().flatten();
    let owner =
        owners.into_iter().find(|owner| owner.controller == Some(true) && owner.kind == "DaemonSet")?;
    let status = object.status.clone().unwrap_or_default();
    let deleting = object.metadata.deletion_timestamp.is_some();
    let ready = status
        .conditions
        .iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let mut containers = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    Some(Pod {
        daemon_set: Key::new(object.metadata.namespace.clone().unwrap_or_default(), owner.name.clone()),
        role: role(&object.metadata),
        node: object.spec.as_ref()?.node_name.clone()?,
        ready: ready && !deleting,
        trouble: containers.find_map(trouble),
    })
}

/// Why a container does not run, or why it ended before it was started again and is not ready yet.
fn trouble(container: &ContainerStatus) -> Option<String> {
    let ended = |state: Option<&ContainerState>| state.and_then(|state| state.terminated.clone());
    let previous = ended(container.last_state.as_ref()).filter(|ended| ended.exit_code != 0);
    let waiting = container.state.as_ref().and_then(|state| state.waiting.as_ref());
    let starting = ["ContainerCreating", "PodInitializing"];
    let (reason, message) = match waiting.and_then(|waiting| Some((waiting, waiting.reason.as_deref()?))) {
        // The kubelet reports only the back-off; the cause is in the previous termination.
        Some((waiting, reason @ "CrashLoopBackOff")) => {
            let told = previous.as_ref().and_then(last_words);
            (reason.to_owned(), told.or_else(|| waiting.message.clone()))
        }
        Some((waiting, reason)) if !starting.contains(&reason) => {
            (reason.to_owned(), waiting.message.clone())
        }
        _ => {
            let now = ended(container.state.as_ref()).filter(|ended| ended.exit_code != 0);
            let ended = now.or(previous.filter(|_| !container.ready))?;
            (format!("ended with {}", ended.exit_code), last_words(&ended))
        }
    };
    let message = message.map(|message| format!(": {message}")).unwrap_or_default();
    Some(annotations::shortened(format!("container {}: {reason}{message}", container.name)))
}

/// The last line of the termination message, truncated to fit into a status.
fn last_words(ended: &ContainerStateTerminated) -> Option<String> {
    const LONGEST: usize = 600;
    let line = ended.message.as_deref()?.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.trim().chars().take(LONGEST).collect())
}

/// The kubeconfig path in a ConfigMap that configures kube-proxy, by file.
pub fn configuration(object: &ConfigMap) -> BTreeMap<String, String> {
    let files = object.data.iter().flatten();
    files.filter_map(|(file, text)| Some((file.clone(), kubeconfig_path(text)?))).collect()
}

/// The kubeconfig path in a configuration file of kube-proxy.
pub fn kubeconfig_path(text: &str) -> Option<String> {
    let configuration: Value = serde_yaml::from_str(text).ok()?;
    let path = configuration.pointer("/clientConnection/kubeconfig")?.as_str()?;
    (!path.is_empty()).then(|| path.to_owned())
}

/// Converts an object that the operator manages entirely.
pub fn written(object: &DynamicObject) -> Written {
    let metadata = &object.metadata;
    Written {
        identity: identity(metadata),
        ours: owners(metadata.managed_fields.as_ref(), &["-"])
            .iter()
            .any(|owner| owner.is_us() && owner.labels.contains(NAME_LABEL)),
        deleting: metadata.deletion_timestamp.is_some(),
        content: content(object.data.clone()),
    }
}

/// The webhook's CA bundle in base64.
pub fn bundle(object: &ValidatingWebhookConfiguration) -> Option<String> {
    let webhook = object.webhooks.as_ref()?.first()?;
    match serde_json::to_value(webhook.client_config.ca_bundle.as_ref()?).ok()? {
        Value::String(bundle) if !bundle.is_empty() => Some(bundle),
        _ => None,
    }
}

/// The label that Istio sets on every injected pod.
pub const INJECTED_LABEL: &str = "security.istio.io/tlsMode";

/// Converts a pod with a sidecar, unless it is terminating or finished.
pub fn sidecar_pod(object: &PodObject) -> Option<SidecarPod> {
    let metadata = &object.metadata;
    if is_ending(object) {
        return None;
    }
    Some(SidecarPod {
        labels: metadata.labels.clone().unwrap_or_default(),
        annotations: annotations_of(metadata, &[INTERCEPTION_MODE_ANNOTATION, PROXY_CONFIG_ANNOTATION]),
        sidecar: Sidecar::of(object)?,
        owner: owner(metadata),
    })
}

/// Converts a pod that may need the init container of a redirect, unless it is terminating or
/// finished. Pods in the host network never get one.
pub fn redirect_pod(object: &PodObject) -> Option<RedirectPod> {
    let (metadata, spec) = (&object.metadata, object.spec.as_ref()?);
    if is_ending(object) || spec.host_network == Some(true) {
        return None;
    }
    Some(RedirectPod {
        labels: metadata.labels.clone().unwrap_or_default(),
        annotations: annotations_of(metadata, &redirect::ANNOTATIONS),
        shape: Shape::of(spec),
        owner: owner(metadata),
    })
}

fn is_ending(object: &PodObject) -> bool {
    let phase = object.status.as_ref().and_then(|status| status.phase.as_deref());
    object.metadata.deletion_timestamp.is_some() || matches!(phase, Some("Succeeded" | "Failed"))
}

fn annotations_of(metadata: &ObjectMeta, names: &[&str]) -> Labels {
    let all = metadata.annotations.iter().flatten();
    let relevant = all.filter(|(name, _)| names.contains(&name.as_str()));
    relevant.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The workload that recreates a pod. The name of a Deployment is derived from its ReplicaSet's.
fn owner(metadata: &ObjectMeta) -> (String, String) {
    let owners = metadata.owner_references.iter().flatten();
    let Some(owner) = owners.clone().find(|owner| owner.controller == Some(true)) else {
        return ("Pod".to_owned(), metadata.name.clone().unwrap_or_default());
    };
    let hash = metadata.labels.as_ref().and_then(|labels| labels.get("pod-template-hash"));
    let deployment = hash.and_then(|hash| owner.name.strip_suffix(hash.as_str())?.strip_suffix('-'));
    match deployment {
        Some(name) if owner.kind == "ReplicaSet" => ("Deployment".to_owned(), name.to_owned()),
        _ => (owner.kind.clone(), owner.name.clone()),
    }
}
