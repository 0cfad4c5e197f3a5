//! The proposed IngressSourcePreserve: which Services, which ingress nodes, which mode. Pure: the
//! same facts give the same text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use isp_api::preserve::Mode;
use isp_plan::Key;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::fit::{Answer, Fit};
use super::sidecars::hides;
use crate::doctor::cluster::Cluster;
use crate::doctor::examine::INGRESS_LABEL;
use crate::doctor::judgement::Arrival;
use crate::doctor::kinds::Kind;
use crate::doctor::selection::PodIndex;
use crate::text::{few, printable};

#[cfg(test)]
mod tests;

/// Labels by which clusters mark the nodes that receive external traffic, the best first.
const LABELS: [&str; 4] = [
    INGRESS_LABEL,
    "node-role.kubernetes.io/edge",
    "node-role.kubernetes.io/gateway",
    // kind's own label for the node that it maps ports to.
    "ingress-ready",
];
/// The schema admits so many entries.
const MAX_SERVICES: usize = 64;
const MAX_SIDECARS: usize = 32;
/// A command names so many nodes.
const MAX_NODES: usize = 100;

/// A proposed object.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub(crate) struct Proposal {
    /// An IngressSourcePreserve; the CRD has its schema.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub(super) object: Value,
    /// Commands to run before the object is applied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) commands: Vec<String>,
    /// What the object leaves out or assumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
}

impl Proposal {
    /// As a file of this name, with the commands and notes as comments.
    pub(super) fn text(&self, file: &Path) -> String {
        let file = file.display().to_string();
        let mut text = "# Proposed by `kubectl isp check`. Review it before you apply it:\n".to_owned();
        let steps = [format!("kubectl isp plan -f {file}"), format!("kubectl apply -f {file}")];
        for line in self.commands.iter().chain(&steps) {
            text.extend(["#   ", &printable(line), "\n"]);
        }
        for note in &self.notes {
            text.extend(["# ", &printable(note), "\n"]);
        }
        // A JSON value with text keys can always be written.
        text + &serde_yaml::to_string(&self.object).unwrap_or_default()
    }
}

/// The nodes that receive the traffic.
struct IngressNodes<'a> {
    label: String,
    names: BTreeSet<&'a str>,
    /// Whether the label has to be set first.
    is_new: bool,
}

/// Proposes an object for the Services that lose the source IP at a node, and that no object names.
pub(super) fn propose(cluster: &Cluster, asked: Option<&Key>, fit: &Fit) -> Option<Proposal> {
    if !cluster.knows(Kind::EndpointSlice) || !cluster.knows(Kind::Node) {
        return None;
    }
    let refused = [&fit.filter, &fit.beside].iter().all(|verdict| verdict.answer == Answer::No);
    let owners = cluster.owners();
    let lost = cluster.exposed(asked).filter(|(key, service)| {
        service.arrival() == Arrival::Node && !owners.contains_key(*key) && is_name(key)
    });
    let lost: Vec<(&Key, BTreeSet<&str>)> =
        lost.map(|(key, _)| (key, cluster.ready_endpoints(key).into_keys().collect())).collect();
    let ingress = ingress_nodes(cluster, &lost).filter(|_| !refused)?;
    let serves = |(_, ready): &&(&Key, BTreeSet<&str>)| ready.iter().any(|node| ingress.names.contains(node));
    let (mut services, left): (Vec<_>, Vec<_>) = lost.iter().partition(|service| serves(service));
    let mut notes = notes(cluster, fit, &ingress);
    let names = |services: &[&(&Key, BTreeSet<&str>)]| -> Vec<String> {
        services.iter().map(|(key, _)| key.to_string()).collect()
    };
    if !left.is_empty() {
        notes.push(format!(
            "Left out, because no ingress node has a ready endpoint of it: {}",
            few(&names(&left))
        ));
    }
    if services.len() > MAX_SERVICES {
        let more = services.split_off(MAX_SERVICES);
        notes.push(format!(
            "Left out, because an object names at most {MAX_SERVICES} Services: {}",
            few(&names(&more))
        ));
    }
    let keys: Vec<&Key> = services.iter().map(|(key, _)| *key).collect();
    let commands = if ingress.is_new { label(&ingress) } else { Vec::new() };
    Some(Proposal { object: object(cluster, &keys, &ingress, fit), commands, notes })
}

/// A dump may have any text as a name. An object with it would be refused.
fn is_name(key: &Key) -> bool {
    let label = |text: &str| {
        let letters = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        !text.is_empty()
            && text.len() <= 63
            && text.chars().all(letters)
            && !text.starts_with('-')
            && !text.ends_with('-')
    };
    label(&key.namespace) && label(&key.name)
}

/// The nodes with an existing label that serve the most Services, else the nodes with endpoints.
fn ingress_nodes<'a>(cluster: &'a Cluster, lost: &[(&Key, BTreeSet<&'a str>)]) -> Option<IngressNodes<'a>> {
    let labelled = LABELS.into_iter().map(|label| {
        let nodes = cluster.nodes.iter().filter(|(_, node)| node.labels.contains_key(label));
        let names: BTreeSet<&str> = nodes.map(|(name, _)| name.as_str()).collect();
        let served = lost.iter().filter(|(_, ready)| ready.iter().any(|node| names.contains(node))).count();
        (served, IngressNodes { label: label.to_owned(), names, is_new: false })
    });
    // The first of equals.
    let best = labelled.rev().max_by_key(|(served, _)| *served).filter(|(served, _)| *served > 0);
    if let Some((_, ingress)) = best {
        return Some(ingress);
    }
    let names: BTreeSet<&str> = lost.iter().flat_map(|(_, ready)| ready.iter().copied()).collect();
    let names: BTreeSet<&str> = names.into_iter().filter(|name| cluster.nodes.contains_key(*name)).collect();
    (!names.is_empty()).then(|| IngressNodes { label: new_label(cluster, lost), names, is_new: true })
}

/// A label that no object and no node uses: with one that is in use, other nodes would become
/// ingress nodes of this object, or these nodes those of another.
fn new_label(cluster: &Cluster, lost: &[(&Key, BTreeSet<&str>)]) -> String {
    let is_used = cluster.nodes.values().any(|node| node.labels.contains_key(INGRESS_LABEL));
    if !is_used && cluster.objects.is_empty() {
        return INGRESS_LABEL.to_owned();
    }
    let keys: Vec<&Key> = lost.iter().map(|(key, _)| *key).collect();
    let name: String = name(cluster, &keys).chars().take(50).collect();
    format!("node-role.kubernetes.io/{name}-ingress")
}

fn label(ingress: &IngressNodes<'_>) -> Vec<String> {
    let names: Vec<&str> = ingress.names.iter().copied().collect();
    names
        .chunks(MAX_NODES)
        .map(|names| format!("kubectl label node {} {}=", names.join(" "), ingress.label))
        .collect()
}

fn notes(cluster: &Cluster, fit: &Fit, ingress: &IngressNodes<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if ingress.names.len() == cluster.nodes.len() {
        notes.push(
            "Every node would be an ingress node. Then externalTrafficPolicy Local, set by hand, has the same effect; fewer ingress nodes may be better."
                .to_owned(),
        );
    } else if ingress.names.len() == 1 {
        notes.push("One ingress node is a single point of failure; two or more are better.".to_owned());
    }
    match fit.mode {
        None => {
            notes.push("Whether a mode fits this cluster is not known; kubectl isp plan tells.".to_owned());
        }
        Some(Mode::Beside) if fit.beside.answer == Answer::Perhaps => {
            notes.push(format!("Mode Beside fits on a condition: {}", fit.beside.reasons.join("; ")));
        }
        Some(_) => {}
    }
    notes
}

fn object(cluster: &Cluster, services: &[&Key], ingress: &IngressNodes<'_>, fit: &Fit) -> Value {
    let targets: Vec<Value> =
        services.iter().map(|key| json!({"namespace": key.namespace, "name": key.name})).collect();
    let mut object = json!({
        "apiVersion": "sourcepreserve.io/v1alpha1",
        "kind": "IngressSourcePreserve",
        "metadata": {"name": name(cluster, services)},
        "spec": {
            "ingressNodes": {"selector": {"matchExpressions": [{"key": ingress.label, "operator": "Exists"}]}},
            "services": targets,
            "mode": fit.mode.unwrap_or_default(),
        },
    });
    let sidecars = sidecars(cluster, services);
    if !sidecars.is_empty() {
        object["spec"]["sidecars"] = json!(sidecars);
    }
    object
}

/// That of the only Service, else `ingress`, with a number if it is taken.
fn name(cluster: &Cluster, services: &[&Key]) -> String {
    let taken: BTreeSet<&str> =
        cluster.objects.iter().filter_map(|object| object.metadata.name.as_deref()).collect();
    let base = match services {
        [only] => only.name.as_str(),
        _ => "ingress",
    };
    if !taken.contains(base) {
        return base.to_owned();
    }
    // One more candidate than there are objects is always enough.
    let base: String = base.chars().take(55).collect();
    let numbered = (2..=taken.len() + 2).map(|number| format!("{base}-{number}"));
    numbered.into_iter().find(|name| !taken.contains(name.as_str())).unwrap_or(base)
}

/// The pods directly behind the Services whose sidecar hides the client from the application.
/// Behind a gateway the peer is the gateway in any mode.
fn sidecars(cluster: &Cluster, services: &[&Key]) -> Vec<Value> {
    let index = PodIndex::of_cluster(cluster);
    let mut selectors: BTreeMap<String, Value> = BTreeMap::new();
    for key in services {
        let Some(selector) = cluster.services.get(*key).and_then(|service| service.spec.selector.as_ref())
        else {
            continue;
        };
        if selector.is_empty() || !index.of(key).iter().any(|(_, pod)| hides(pod)) {
            continue;
        }
        let entry = json!({
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": key.namespace}},
            "podSelector": {"matchLabels": selector},
            "interceptionMode": "TPROXY",
        });
        // Several Services may select the same pods.
        selectors.insert(entry.to_string(), entry);
    }
    selectors.into_values().take(MAX_SIDECARS).collect()
}
