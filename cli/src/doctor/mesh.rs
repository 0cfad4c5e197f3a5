//! Istio's settings that concern addresses: of the mesh, of one pod, and of `EnvoyFilter`s.

use isp_api::names::INTERCEPTION_MODE_ANNOTATION;
use isp_api::sidecar::{Labels, PROXY_CONFIG_ANNOTATION, REVISION_LABEL};
use serde::Deserialize;
use serde_json::Value;

use super::cluster::{Cluster, Pod};

/// The default root namespace, whose policies apply to the whole mesh.
const ROOT_NAMESPACE: &str = "istio-system";

/// The settings of a mesh.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Mesh {
    default_config: ProxyConfig,
    root_namespace: Option<String>,
}

/// The settings of a proxy.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ProxyConfig {
    interception_mode: Option<String>,
    gateway_topology: Topology,
}

/// The hops before a gateway.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Topology {
    num_trusted_proxies: Option<u32>,
    proxy_protocol: Option<Value>,
}

/// A setting, and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) by: &'static str,
}

const BY_MESH: &str = "meshConfig.defaultConfig";
const BY_POD: &str = "the pod's annotation proxy.istio.io/config";

impl ProxyConfig {
    /// The settings of a pod itself.
    pub(crate) fn of(annotations: &Labels) -> Self {
        let text = annotations.get(PROXY_CONFIG_ANNOTATION);
        text.and_then(|text| serde_yaml::from_str(text).ok()).unwrap_or_default()
    }
}

impl Mesh {
    /// The mesh that a pod belongs to, by its revision.
    pub(crate) fn of(cluster: &Cluster, pod: &Pod) -> Self {
        let revision = pod.annotations.get(REVISION_LABEL).or_else(|| pod.labels.get(REVISION_LABEL));
        let name = match revision.map(String::as_str) {
            None | Some("default") => "istio".to_owned(),
            Some(revision) => format!("istio-{revision}"),
        };
        Self::named(cluster, &name).or_else(|| Self::named(cluster, "istio")).unwrap_or_default()
    }

    fn named(cluster: &Cluster, name: &str) -> Option<Self> {
        cluster.meshes.iter().find(|(key, _)| key.name == name).map(|(_, mesh)| mesh.clone())
    }

    pub(crate) fn root_namespace(&self) -> &str {
        self.root_namespace.as_deref().unwrap_or(ROOT_NAMESPACE)
    }

    /// The mode that the injector gives a pod; the setting closest to the pod decides.
    pub(crate) fn interception_mode(&self, pod: &Pod) -> Setting<String> {
        if let Some(mode) = pod.annotations.get(INTERCEPTION_MODE_ANNOTATION) {
            return Setting {
                value: mode.clone(),
                by: "the pod's annotation sidecar.istio.io/interceptionMode",
            };
        }
        let own = pod.settings.interception_mode.clone();
        match (own, self.default_config.interception_mode.clone()) {
            (Some(value), _) => Setting { value, by: BY_POD },
            (None, Some(value)) => Setting { value, by: BY_MESH },
            (None, None) => Setting { value: "REDIRECT".to_owned(), by: "Istio's default" },
        }
    }

    /// The number of trusted proxies before a gateway.
    pub(crate) fn trusted_proxies(&self, pod: &Pod) -> Option<Setting<u32>> {
        let own = pod.settings.gateway_topology.num_trusted_proxies;
        let mesh = self.default_config.gateway_topology.num_trusted_proxies;
        let setting = match own {
            Some(value) => Setting { value, by: BY_POD },
            None => Setting { value: mesh?, by: BY_MESH },
        };
        (setting.value > 0).then_some(setting)
    }

    /// The setting that makes a gateway expect the PROXY protocol.
    pub(crate) fn proxy_protocol(&self, pod: &Pod) -> Option<&'static str> {
        let own = &pod.settings.gateway_topology.proxy_protocol;
        match (own, &self.default_config.gateway_topology.proxy_protocol) {
            (Some(_), _) => Some(BY_POD),
            (None, Some(_)) => Some(BY_MESH),
            (None, None) => None,
        }
    }
}

/// The workloads of a policy or an `EnvoyFilter`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Selector {
    #[serde(alias = "labels")]
    pub(crate) match_labels: Labels,
}

/// An object that a policy or an `EnvoyFilter` is attached to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TargetRef {
    pub(crate) kind: String,
    pub(crate) name: String,
}

/// An `EnvoyFilter`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct EnvoyFilter {
    pub(crate) workload_selector: Option<Selector>,
    pub(crate) target_refs: Vec<TargetRef>,
    pub(crate) config_patches: Vec<Value>,
}

impl EnvoyFilter {
    /// Whether a word occurs in it, as a name or as a value.
    pub(crate) fn mentions(&self, word: &str) -> bool {
        self.config_patches.iter().any(|patch| mentions(patch, word))
    }
}

fn mentions(value: &Value, word: &str) -> bool {
    match value {
        Value::String(text) => text.contains(word),
        Value::Array(values) => values.iter().any(|value| mentions(value, word)),
        Value::Object(fields) => fields.iter().any(|(key, value)| key == word || mentions(value, word)),
        _ => false,
    }
}

pub(crate) const GATEWAY_LABEL: &str = "gateway.networking.k8s.io/gateway-name";
const GATEWAY_CLASS_LABEL: &str = "gateway.networking.k8s.io/gateway-class-name";

/// The pods that an object of a namespace applies to.
pub(crate) struct Reach<'a> {
    pub(crate) namespace: &'a str,
    /// Whether the namespace is a root namespace.
    pub(crate) of_mesh: bool,
    pub(crate) selector: Option<&'a Selector>,
    pub(crate) targets: Vec<&'a TargetRef>,
}

impl Reach<'_> {
    /// Whether it applies to a pod of a namespace.
    pub(crate) fn meets(&self, namespace: &str, pod: &Pod) -> bool {
        if !self.targets.is_empty() {
            return self.targets.iter().any(|target| {
                let is = |label: &str| pod.labels.get(label) == Some(&target.name);
                match target.kind.as_str() {
                    "Gateway" => namespace == self.namespace && is(GATEWAY_LABEL),
                    "GatewayClass" => self.of_mesh && is(GATEWAY_CLASS_LABEL),
                    _ => false,
                }
            });
        }
        (self.of_mesh || namespace == self.namespace)
            && self.selector.is_none_or(|selector| pod.has(&selector.match_labels))
    }
}
