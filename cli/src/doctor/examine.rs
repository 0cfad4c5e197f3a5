//! The checks: a pure function of the facts and the time. Each module checks one topic and knows
//! nothing of the others. The order of the codes puts causes before their effects.

mod addresses;
mod certificates;
mod exposure;
mod gateways;
pub(super) mod kube_proxy;
mod leftovers;
mod lists;
mod nodes;
mod objects;
mod passed;
mod policies;
mod programs;
mod remedies;
mod service_settings;
mod services;
mod sidecars;
mod stand_ins;
mod taken_over;
mod ways;

use std::collections::{BTreeMap, BTreeSet};

use isp_api::IngressSourcePreserve;
use isp_api::claims::{Claimed, claims};
use isp_api::preserve::Mode;
use isp_plan::Key;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use serde::Serialize;

pub(crate) use self::passed::Passed;
use self::stand_ins::StandIns;
use self::ways::Ways;
use super::cluster::{Cluster, Missing, Node, Service};
use super::finding::{Code, Finding, Severity, Subject};
use super::kinds::Kind;
use super::selection::PodIndex;

/// The result of all checks. Scripts rely on the serialized field names.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Examination {
    /// Faults and notes, the gravest first.
    pub(crate) findings: Vec<Finding>,
    /// Checks that found no fault.
    pub(crate) passed: Vec<Passed>,
}

impl Examination {
    /// Adds findings that did not come from the facts of the cluster.
    pub(crate) fn add(&mut self, findings: Vec<Finding>) {
        self.findings.extend(findings);
        sort(&mut self.findings);
    }
}

/// The gravest first, causes before their effects.
fn sort(found: &mut [Finding]) {
    found.sort_by(|a, b| {
        (a.severity, a.code, &a.subject, &a.line).cmp(&(b.severity, b.code, &b.subject, &b.line))
    });
}

/// Examines a whole cluster, or what affects one Service.
pub(crate) fn examine(cluster: &Cluster, service: Option<&Key>, now: Timestamp) -> Examination {
    let scope = Scope::of(cluster, service, now);
    let mut found = Vec::new();
    programs::check(&scope, &mut found);
    objects::check(&scope, &mut found);
    leftovers::check(&scope, &mut found);
    taken_over::check(&scope, &mut found);
    kube_proxy::check(&scope, &mut found);
    nodes::check(&scope, &mut found);
    services::check(&scope, &mut found);
    sidecars::check(&scope, &mut found);
    gateways::check(&scope, &mut found);
    let (ways, stand_ins) = (Ways::of(&scope), StandIns::of(cluster));
    policies::check(&scope, &ways, &stand_ins, &mut found);
    lists::check(&scope, &ways, &stand_ins, &mut found);
    exposure::check(&scope, &mut found);
    not_looked_at(&scope, &mut found);
    raise_causes(&mut found);
    sort(&mut found);
    found.dedup();
    Examination { passed: passed::passed(&scope, &found), findings: found }
}

/// A cause is at least as severe as its effects.
fn raise_causes(found: &mut [Finding]) {
    let follows: Vec<(Code, Subject, Severity)> = found
        .iter()
        .flat_map(|finding| {
            finding.follows.iter().map(|(code, subject)| (*code, subject.clone(), finding.severity))
        })
        .collect();
    for (code, subject, severity) in follows {
        for cause in found.iter_mut().filter(|cause| cause.code == code && cause.subject == subject) {
            cause.severity = cause.severity.min(severity);
        }
    }
}

/// What to examine: the facts, with the objects and Services in question.
struct Scope<'a> {
    cluster: &'a Cluster,
    now: Timestamp,
    /// The Service of `--service`.
    asked: Option<&'a Key>,
    /// All objects, or those that select the Service of `--service`.
    objects: Vec<Object<'a>>,
    /// The preserved Services, or the Service of `--service`, and the object that each belongs to.
    services: BTreeMap<&'a Key, Option<usize>>,
    pods: PodIndex<'a>,
    /// Other exposed Services: no object selects them, but policies may depend on them.
    others: BTreeSet<&'a Key>,
}

/// An object with its selections.
struct Object<'a> {
    written: &'a IngressSourcePreserve,
    name: String,
    /// Whether it is being deleted.
    is_deleted: bool,
    /// The Services that it selects and that no older object has.
    services: BTreeSet<&'a Key>,
    /// Services that it names and that do not exist.
    missing: Vec<Key>,
    ingress_nodes: BTreeSet<&'a str>,
}

impl<'a> Scope<'a> {
    fn of(cluster: &'a Cluster, asked: Option<&'a Key>, now: Timestamp) -> Self {
        let written = isp_api::age::by_age(&cluster.objects);
        let claimed = claims(&written, &cluster.service_identities()).claimed;
        let mut objects: Vec<Object<'a>> = written
            .into_iter()
            .zip(claimed)
            .map(|(written, claimed)| Object::of(cluster, written, claimed))
            .collect();
        if let Some(asked) = asked {
            objects.retain(|object| object.selects(cluster, asked));
        }
        let mut services = BTreeMap::new();
        for (place, object) in objects.iter().enumerate().filter(|(_, object)| !object.is_deleted) {
            services.extend(object.services.iter().map(|key| (*key, Some(place))));
        }
        let mut others = BTreeSet::new();
        if let Some(asked) = asked {
            services.retain(|key, _| *key == asked);
            services.entry(asked).or_insert(None);
        } else {
            let exposed = cluster.services.iter().filter(|(_, service)| service.facts.exposed);
            others.extend(exposed.map(|(key, _)| key).filter(|key| !services.contains_key(*key)));
        }
        Self { cluster, now, asked, objects, services, others, pods: PodIndex::of_cluster(cluster) }
    }

    /// Objects that are not being deleted.
    fn standing(&self) -> impl Iterator<Item = &Object<'a>> {
        self.objects.iter().filter(|object| !object.is_deleted)
    }

    /// The existing ones of `services`, with the object that each belongs to.
    fn services(&self) -> impl Iterator<Item = (&'a Key, &'a Service, Option<&Object<'a>>)> {
        self.services.iter().filter_map(|(key, place)| {
            let object = place.and_then(|place| self.objects.get(place));
            Some((*key, self.cluster.services.get(*key)?, object))
        })
    }

    /// All exposed Services by name.
    fn exposed(&self) -> impl Iterator<Item = (&'a Key, &'a Service, Option<&Object<'a>>)> {
        let mut keys: Vec<&'a Key> = self.services.keys().chain(&self.others).copied().collect();
        keys.sort_unstable();
        let found = keys.into_iter().filter_map(|key| Some((key, self.service(key)?)));
        found
            .map(|(key, (service, object))| (key, service, object))
            .filter(|(_, service, _)| service.facts.exposed)
    }

    /// A Service that exists, with the object that it belongs to.
    fn service(&self, key: &Key) -> Option<(&'a Service, Option<&Object<'a>>)> {
        let object = self.services.get(key).copied().flatten().and_then(|place| self.objects.get(place));
        Some((self.cluster.services.get(key)?, object))
    }

    /// Whether the settings of kube-proxy matter. They do not to the Services of mode Beside, which
    /// it skips.
    fn concerns_kube_proxy(&self) -> bool {
        let mut modes = self.standing().map(|object| object.written.spec.mode).peekable();
        match modes.peek() {
            Some(_) => modes.any(|mode| mode == Mode::Filter),
            None => !self.services.is_empty(),
        }
    }
}

impl<'a> Object<'a> {
    fn of(cluster: &'a Cluster, written: &'a IngressSourcePreserve, claimed: Claimed<'a>) -> Self {
        let is_deleted = written.metadata.deletion_timestamp.is_some();
        let keys: Vec<&Key> = cluster.services.keys().collect();
        let services = claimed.services.into_iter().map(|index| keys[index]).collect();
        let missing = claimed.missing.into_iter().map(|(namespace, name)| Key::new(namespace, name));
        let is_ingress = |node: &Node| written.spec.ingress_nodes.contains(&node.labels).unwrap_or(false);
        let ingress = cluster.nodes.iter().filter(|(_, node)| is_ingress(node));
        Self {
            written,
            name: written.name_any(),
            is_deleted,
            services,
            missing: missing.collect(),
            ingress_nodes: ingress.map(|(name, _)| name.as_str()).collect(),
        }
    }

    fn selects(&self, cluster: &Cluster, service: &Key) -> bool {
        let labels = cluster.services.get(service).map(|service| &service.facts.labels);
        let none = BTreeMap::new();
        let labels = labels.unwrap_or(&none);
        let matches = |target: &isp_api::preserve::ServiceTarget| {
            target.matches(&service.namespace, &service.name, labels).unwrap_or(false)
        };
        self.written.spec.services.iter().any(matches)
    }

    fn subject(&self) -> Subject {
        Subject::new("IngressSourcePreserve", &self.name)
    }
}

/// Kinds and objects that could not be examined.
fn not_looked_at(scope: &Scope<'_>, found: &mut Vec<Finding>) {
    const UNKNOWN: &str =
        "The checks that depend on them were skipped, so the absence of findings proves nothing there.";
    let graded =
        |finding: Finding, grave: bool| if grave { finding.graded(Severity::Warning) } else { finding };
    for (kind, why) in &scope.cluster.not_looked_at {
        let line = format!("{} were not examined: {why}", kind.resource());
        let finding = Finding::new(Code::NotLookedAt, Subject::new("Kind", kind.as_str()), line);
        let grave = kind.is_essential() && *why != Missing::PerhapsNotInDump;
        found.push(graded(finding.because(UNKNOWN).do_this(look(*kind)), grave));
    }
    for ((kind, key), why) in &scope.cluster.unreadable {
        let subject = Subject::new(kind.as_str(), key);
        let finding = Finding::new(Code::NotLookedAt, subject, format!("it cannot be parsed: {why}"));
        let get = format!("kubectl get {} -n {} {} -o yaml", kind.resource(), key.namespace, key.name);
        let finding = finding.because("It was skipped, and Istio may not be able to parse it either.");
        found.push(graded(finding.do_this(get), kind.is_essential()));
    }
}

fn look(kind: Kind) -> String {
    format!("kubectl auth can-i list {} --all-namespaces   # or add them to the dump", kind.resource())
}
