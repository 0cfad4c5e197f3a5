//! What new pods get by entries with `redirect`, in words. Pure; called by `forecast`.

use std::collections::BTreeMap;

use isp_api::IngressSourcePreserve;
use isp_api::preserve::{Exempt, Inbound, InitOrder, Method, Outbound, Redirect, StaleOwner};
use isp_api::sidecar::{Effect, Namespace, Rules};
use isp_plan::Cluster;
use isp_plan::build::pod_redirect::effect;
use isp_plan::plan::remedy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::Serialize;

use crate::text::{count, few, selector};

#[cfg(test)]
mod tests;

/// What the pods of one entry get.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct RedirectForecast {
    /// The path of the entry in the object.
    pub(super) entry: String,
    /// Which pods get what, and then what it does.
    pub(super) description: Vec<String>,
}

/// The pods that exist and get it only when they are recreated.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Existing {
    /// How many they are.
    pub(super) pods: u64,
    /// How to recreate those of the first owner.
    pub(super) remedy: String,
    /// How many other owners there are.
    pub(super) more_owners: usize,
}

/// The entries of an object, each with what it does.
fn redirects(object: &IngressSourcePreserve) -> Vec<RedirectForecast> {
    let entries = object.spec.sidecars.iter().enumerate();
    entries
        .filter_map(|(place, entry)| {
            let redirect = entry.redirect.as_ref()?;
            let namespaces = selector(&entry.namespace_selector);
            let pods = if entry.pod_selector == LabelSelector::default() {
                "all new pods".to_owned()
            } else {
                format!("new pods with {}", selector(&entry.pod_selector))
            };
            let order = match redirect.init_order {
                InitOrder::First => "before their other init containers",
                InitOrder::Last => "after their other init containers",
            };
            let head = format!(
                "{pods} in namespaces with {namespaces} get init container pod-redirect, which runs {order}, may write packet rules of the pod \
                 (NET_ADMIN) and ends"
            );
            let description = std::iter::once(head).chain(words(redirect)).collect();
            Some(RedirectForecast { entry: format!("spec.sidecars[{place}]"), description })
        })
        .collect()
}

/// What the init container does.
fn words(redirect: &Redirect) -> Vec<String> {
    let Redirect { inbound, outbound, exempt, init_order: _ } = redirect;
    let mut words = Vec::new();
    words.extend(inbound.as_ref().map(|Inbound { method, port, ports, except_ports }| {
        let how = match method {
            Method::Tproxy => "TPROXY; the proxy must listen transparently, for which its container needs NET_RAW or NET_ADMIN",
            Method::Redirect => "REDIRECT",
        };
        format!("TCP connections to {} of the pod go to its proxy on port {port}, by {how}", ports_of(ports, except_ports))
    }));
    words.extend(outbound.as_ref().map(|outbound| {
        let Outbound { port, destinations, ports, except_destinations, except_ports } = outbound;
        let places = named("every destination", "", destinations, except_destinations);
        format!(
            "TCP connections of the pod to {} of {places} go to its proxy on port {port}",
            ports_of(ports, except_ports)
        )
    }));
    if outbound.is_some() {
        words.push(match exempt.as_ref().map(proxy) {
            Some(proxy) => format!("except those of the proxy: {proxy}"),
            None => "also those of the proxy itself, which must not connect to these destinations: they would return to it".to_owned(),
        });
    }
    words
}

fn ports_of(ports: &[u16], except: &[u16]) -> String {
    let texts = |ports: &[u16]| ports.iter().map(ToString::to_string).collect::<Vec<_>>();
    named("all ports", if ports.len() == 1 { "port " } else { "ports " }, &texts(ports), &texts(except))
}

fn named(all: &str, noun: &str, names: &[String], except: &[String]) -> String {
    let some = if names.is_empty() { all.to_owned() } else { format!("{noun}{}", few(names)) };
    if except.is_empty() { some } else { format!("{some} except {}", few(except)) }
}

fn proxy(Exempt { uids, gids, marks, cgroup }: &Exempt) -> String {
    let list = |noun: &str, ids: &[u32]| {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        (!ids.is_empty()).then(|| format!("{noun} {}", few(&ids)))
    };
    let cgroup = cgroup.as_ref().and_then(|cgroup| {
        let class = cgroup.class_id.map(|class| format!("net_cls class {class:#x}"));
        cgroup.path.as_ref().map(|path| format!("cgroup {path}")).or(class)
    });
    let known = [list("user", uids), list("group", gids), list("socket mark", marks), cgroup];
    known.into_iter().flatten().collect::<Vec<_>>().join(" or ")
}

/// The pods of the cluster that the object's entries change only when they are recreated.
fn existing(cluster: &Cluster, own_namespace: &str, object: &str) -> Option<Existing> {
    let rules = Rules::new(cluster.objects.values(), own_namespace);
    let stale = cluster.redirects.iter().filter(|(key, pod)| {
        let labels = cluster.namespaces.get(&key.namespace);
        labels.is_some_and(|labels| {
            let namespace = Namespace { name: &key.namespace, labels };
            effect(&rules, object, namespace, (&pod.labels, &pod.annotations), &pod.shape)
                == Some(Effect::Stale)
        })
    });
    let mut owners = BTreeMap::<_, u32>::new();
    for (key, pod) in stale {
        *owners.entry((&key.namespace, &pod.owner)).or_default() += 1;
    }
    let ((namespace, (kind, name)), pods) = owners.first_key_value()?;
    let first =
        StaleOwner { namespace: (*namespace).clone(), kind: kind.clone(), name: name.clone(), pods: *pods };
    let pods = owners.values().map(|pods| u64::from(*pods)).sum();
    Some(Existing { pods, remedy: remedy(&first), more_owners: owners.len() - 1 })
}

impl Existing {
    /// As a sentence.
    pub(super) fn sentence(&self) -> String {
        let more =
            if self.more_owners == 0 { String::new() } else { format!(" (and {} more)", self.more_owners) };
        format!(
            "{} that exist get it when they are recreated: {}{more}",
            count(self.pods, "pod"),
            self.remedy
        )
    }
}

/// What becomes of pods by the object.
pub(super) fn of(
    cluster: &Cluster,
    own_namespace: &str,
    name: &str,
) -> (Vec<RedirectForecast>, Option<Existing>) {
    let redirects = cluster.objects.get(name).map(redirects).unwrap_or_default();
    let existing = if redirects.is_empty() { None } else { existing(cluster, own_namespace, name) };
    (redirects, existing)
}
