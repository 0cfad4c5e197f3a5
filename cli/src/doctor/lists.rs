//! Address lists in `NetworkPolicy`s, and in `Ingress`es and settings of ingress controllers.

use std::collections::BTreeMap;

use isp_api::sidecar::Labels;
use isp_plan::{Key, observe};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::{
    Ingress as IngressObject, IngressBackend, NetworkPolicy as NetworkPolicyObject,
};
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};

use super::judgement::{Action, Field};
use super::policy::Use;

#[cfg(test)]
mod tests;

/// The CIDR ranges that may connect to pods.
#[derive(Clone, Debug)]
pub(crate) struct NetworkPolicy {
    selector: Selector,
    /// Whether a rule admits every client, so that no range decides.
    pub(crate) lets_everybody_in: bool,
    /// Each entry with a range: the range, and the exceptions from it.
    pub(crate) alternatives: Vec<Vec<Use>>,
}

impl NetworkPolicy {
    /// None if it has no ingress rules, or its pod selector cannot be parsed.
    pub(crate) fn of(object: NetworkPolicyObject) -> Option<Self> {
        let spec = object.spec?;
        let types = spec.policy_types.unwrap_or_default();
        if !types.is_empty() && !types.iter().any(|of| of == "Ingress") {
            return None;
        }
        let selector = Selector::try_from(spec.pod_selector.unwrap_or_default()).ok()?;
        let rules = spec.ingress.unwrap_or_default();
        let is_empty = |list: Option<usize>| list.unwrap_or_default() == 0;
        let lets_everybody_in = rules.iter().any(|rule| {
            is_empty(rule.from.as_ref().map(Vec::len)) && is_empty(rule.ports.as_ref().map(Vec::len))
        });
        let peers = rules.into_iter().flat_map(|rule| rule.from.unwrap_or_default());
        let blocks = peers.filter_map(|peer| peer.ip_block).map(|block| {
            let range = Use::of("ipBlock", Field::Peer, false, &[block.cidr]);
            let except = Use::of("ipBlock.except", Field::Peer, true, &block.except.unwrap_or_default());
            range.into_iter().chain(except).collect()
        });
        Some(Self { selector, lets_everybody_in, alternatives: blocks.collect() })
    }

    pub(crate) fn selects(&self, labels: &Labels) -> bool {
        self.selector.matches(labels)
    }
}

/// Suffixes of annotations and settings that list admitted or rejected ranges.
const LISTS: [(&str, Action); 9] = [
    ("whitelist-source-range", Action::Allow),
    ("allowlist-source-range", Action::Allow),
    ("denylist-source-range", Action::Deny),
    ("blocklist-source-range", Action::Deny),
    ("block-cidrs", Action::Deny),
    ("haproxy.org/allow-list", Action::Allow),
    ("haproxy.org/whitelist", Action::Allow),
    ("haproxy.org/deny-list", Action::Deny),
    ("haproxy.org/blacklist", Action::Deny),
];

/// A list of ranges, by its name.
#[derive(Clone, Debug)]
pub(crate) struct List {
    pub(crate) action: Action,
    pub(crate) used: Use,
}

/// The lists among annotations or settings. Entries that are not ranges, such as file names, are
/// left out.
fn lists(settings: &BTreeMap<String, String>) -> Vec<List> {
    let list = |(name, text): (&String, &String)| {
        let (suffix, action) = LISTS.into_iter().find(|(suffix, _)| name.ends_with(suffix))?;
        let texts: Vec<String> =
            text.split(',').map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect();
        Some(List { action, used: Use::of(suffix, Field::Remote, false, &texts)? })
    };
    settings.iter().filter_map(list).collect()
}

/// The parts of an Ingress that concern addresses.
#[derive(Clone, Debug)]
pub(crate) struct Ingress {
    pub(crate) lists: Vec<List>,
    /// Its addresses, as its controller reports them.
    pub(crate) addresses: Vec<String>,
    pub(crate) backends: Vec<Key>,
}

impl Ingress {
    pub(crate) fn of(object: &IngressObject) -> Self {
        let namespace = object.namespace().unwrap_or_default();
        let spec = object.spec.clone().unwrap_or_default();
        let paths = spec.rules.into_iter().flatten().filter_map(|rule| rule.http).flat_map(|http| http.paths);
        let backends = paths.map(|path| path.backend).chain(spec.default_backend);
        let key = |backend: IngressBackend| Some(Key::new(&*namespace, backend.service?.name));
        let status =
            object.status.as_ref().and_then(|status| status.load_balancer.as_ref()?.ingress.as_ref());
        let addresses =
            status.into_iter().flatten().filter_map(|at| at.ip.clone().or_else(|| at.hostname.clone()));
        Self {
            lists: lists(object.annotations()),
            addresses: addresses.collect(),
            backends: backends.filter_map(key).collect(),
        }
    }
}

/// A pod that is an ingress controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Controller {
    /// The `ConfigMap` with its settings.
    pub(crate) settings: Option<Key>,
}

impl Controller {
    /// Recognized by its image and arguments, because each project has labels of its own.
    pub(crate) fn of(object: &Pod) -> Option<Self> {
        let namespace = observe::key(&object.metadata).namespace;
        let containers = object.spec.as_ref().into_iter().flat_map(|spec| &spec.containers);
        let words: Vec<&String> = containers
            .flat_map(|container| container.command.iter().chain(&container.args).flatten())
            .collect();
        let label = |name: &str| object.labels().get(name).map_or("", String::as_str);
        let named = label("app.kubernetes.io/name").contains("ingress")
            && label("app.kubernetes.io/component") == "controller";
        let told = |word: &&&String| {
            ["--controller-class", "--ingress-class", "--ingress.class"]
                .iter()
                .any(|flag| word.starts_with(flag))
                || word.contains("ingress-controller")
        };
        if !named && !words.iter().any(|word| told(&word)) {
            return None;
        }
        let settings = words.iter().find_map(|word| word.strip_prefix("--configmap="));
        let settings = settings.map(|text| match text.split_once('/') {
            Some(("$(POD_NAMESPACE)", name)) => Key::new(&*namespace, name),
            Some((namespace, name)) => Key::new(namespace, name),
            None => Key::new(&*namespace, text),
        });
        Some(Self { settings })
    }
}

/// The settings of a controller.
#[derive(Clone, Debug, Default)]
pub(crate) struct ControllerSettings {
    pub(crate) lists: Vec<List>,
    pub(crate) proxy_protocol: bool,
    pub(crate) forwarded_headers: bool,
}

impl ControllerSettings {
    /// None if no setting concerns addresses.
    pub(crate) fn of(data: &BTreeMap<String, String>) -> Option<Self> {
        let is_on = |name: &str| data.get(name).is_some_and(|value| value == "true");
        let settings = Self {
            lists: lists(data),
            proxy_protocol: is_on("use-proxy-protocol"),
            forwarded_headers: is_on("use-forwarded-headers"),
        };
        let says = settings.proxy_protocol || settings.forwarded_headers || !settings.lists.is_empty();
        says.then_some(settings)
    }
}
