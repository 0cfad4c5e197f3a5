//! Pods with sidecars: the admission objects that change new pods (Istio's interception mode, or
//! the init container of a redirect), and the count of existing pods.
//!
//! The admission objects follow from the objects alone and are not a rollout step: they do not
//! affect pods without a sidecar, and pods that they miss are counted. They are deleted with the
//! last object that asks for them, also under `deletionPolicy: Retain`, because the webhook decides
//! by the existing objects.
//!
//! Admission objects that another manager created are neither deleted nor overwritten, whatever
//! their names and labels. If one has a name that the operator needs, the condition reports it.

use std::collections::BTreeMap;

use isp_api::Reason;
use isp_api::names::POD_WEBHOOK_CONFIGURATION;
use isp_api::preserve::{SidecarStatus, Sidecars, StaleOwner, Via};
use isp_api::selector::matcher;
use isp_api::sidecar::{Effect, Namespace, Rules};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

use super::Plan;
use super::pools::covers;
use super::snapshot::{Object, Snapshot};
use crate::action::Action;
use crate::build::pod_webhook::Asked;
use crate::build::{pod_policy, pod_redirect, pod_webhook};
use crate::cluster::{Key, Written};
use crate::own::{OwnKind, POD_POLICY_PREFIX, content};

/// The maximum number of webhook entries. Beyond it, a single entry selects all pods and the
/// webhook filters.
const MOST_ENTRIES: usize = 16;
/// The maximum number of owners of stale pods in the status.
const MOST_OWNERS: usize = 20;

/// Applies and deletes the admission objects as the objects require.
pub(super) fn plan(snapshot: &Snapshot<'_>, plan: &mut Plan) {
    let webhook = wanted_webhook(snapshot).map(|webhook| (POD_WEBHOOK_CONFIGURATION.to_owned(), webhook));
    bring(snapshot, OwnKind::PodWebhook, &webhook.into_iter().collect(), plan);
    let (policies, bindings) = wanted_policies(snapshot).into_iter().unzip();
    bring(snapshot, OwnKind::PodPolicy, &policies, plan);
    bring(snapshot, OwnKind::PodPolicyBinding, &bindings, plan);
}

/// Whether an admission object is left that only this object asked for.
pub(super) fn anything_left(snapshot: &Snapshot<'_>, object: &Object<'_>) -> bool {
    let of_object = |kind: OwnKind| made(snapshot, kind).any(|(key, _)| is_policy_of(object.name, &key.name));
    let asked = entries(snapshot, Via::Webhook).next().is_some();
    (!asked && made(snapshot, OwnKind::PodWebhook).next().is_some())
        || of_object(OwnKind::PodPolicy)
        || of_object(OwnKind::PodPolicyBinding)
}

fn bring(snapshot: &Snapshot<'_>, kind: OwnKind, wanted: &BTreeMap<String, Value>, plan: &mut Plan) {
    let there: BTreeMap<&str, (&Key, &Written)> =
        snapshot.cluster.own(kind).map(|(key, written)| (key.name.as_str(), (key, written))).collect();
    for (name, object) in wanted {
        let differs = match there.get(name.as_str()) {
            None => true,
            Some((_, there)) if there.ours => !covers(&there.content, &content(object.clone())),
            // The name is taken by a foreign object.
            Some(_) => false,
        };
        if differs {
            let (key, object) = (Key::new("", name.as_str()), Box::new(object.clone()));
            plan.actions.push(Action::ApplyOwn { kind, key, object });
        }
    }
    for (key, written) in made(snapshot, kind).filter(|(key, _)| !wanted.contains_key(&key.name)) {
        let (key, identity) = (key.clone(), written.identity.clone());
        plan.actions.push(Action::DeleteOwn { kind, key, identity });
    }
}

/// The objects created by the operator: applied by its field manager, under one of its names.
fn made<'s>(snapshot: &'s Snapshot<'_>, kind: OwnKind) -> impl Iterator<Item = (&'s Key, &'s Written)> {
    snapshot.cluster.own(kind).filter(move |(key, written)| kind.found().includes(&key.name) && written.ours)
}

/// Whether an object of this name exists that the operator did not create.
fn is_taken(snapshot: &Snapshot<'_>, kind: OwnKind, name: &str) -> bool {
    snapshot.cluster.own(kind).any(|(key, there)| key.name == name && !there.ours)
}

/// Kind and name of a foreign object that has a name this object needs.
fn taken(snapshot: &Snapshot<'_>, object: &Object<'_>) -> Option<(&'static str, String)> {
    let needed = object.written.spec.sidecars.iter().enumerate();
    needed.into_iter().find_map(|(place, entry)| {
        let (kinds, name): (&[OwnKind], _) = match entry.via {
            Via::Webhook => (&[OwnKind::PodWebhook], POD_WEBHOOK_CONFIGURATION.to_owned()),
            Via::Policy => {
                (&[OwnKind::PodPolicy, OwnKind::PodPolicyBinding], policy_name(object.name, place))
            }
        };
        let kind = kinds.iter().find(|kind| is_taken(snapshot, **kind, &name))?;
        Some((kind.kind(), name))
    })
}

/// The `spec.sidecars` entries of objects that are not being deleted, with object name and index.
/// Entries with an invalid selector are skipped.
fn entries<'s>(snapshot: &'s Snapshot<'_>, via: Via) -> impl Iterator<Item = (&'s str, usize, &'s Sidecars)> {
    let objects = snapshot.objects.iter().filter(|object| object.deletion.is_none() && object.held);
    objects
        .flat_map(|object| {
            object.written.spec.sidecars.iter().enumerate().map(|(place, entry)| (object.name, place, entry))
        })
        .filter(move |(_, _, entry)| {
            entry.via == via
                && matcher(&entry.namespace_selector).is_ok()
                && matcher(&entry.pod_selector).is_ok()
        })
}

/// The webhook configuration for pods. None while no object asks for sidecars, or before the
/// webhook has published its CA bundle.
fn wanted_webhook(snapshot: &Snapshot<'_>) -> Option<Value> {
    let bundle = snapshot.cluster.admission.bundle.as_deref()?;
    let own = &snapshot.settings.namespace;
    let mut asked: Vec<Asked> = Vec::new();
    for (_, _, entry) in entries(snapshot, Via::Webhook) {
        let (namespaces, pods) =
            (pod_policy::namespaces(&entry.namespace_selector, own), entry.pod_selector.clone());
        let redirect = entry.redirect.is_some();
        match asked.iter_mut().find(|known| (&known.namespaces, &known.pods) == (&namespaces, &pods)) {
            Some(known) => known.redirect |= redirect,
            None => asked.push(Asked { namespaces, pods, redirect }),
        }
    }
    if asked.len() > MOST_ENTRIES {
        asked = vec![Asked {
            namespaces: pod_policy::namespaces(&LabelSelector::default(), own),
            pods: LabelSelector::default(),
            redirect: asked.iter().any(|each| each.redirect),
        }];
    }
    (!asked.is_empty()).then(|| pod_webhook::configuration(&asked, bundle, own))
}

/// A policy and its binding, by name, for each entry with `via: Policy`. Empty if the API server
/// does not serve them.
fn wanted_policies(snapshot: &Snapshot<'_>) -> Vec<((String, Value), (String, Value))> {
    if !snapshot.cluster.admission.serves_policies {
        return Vec::new();
    }
    // Our binding would activate a foreign policy.
    let is_free = |name: &String| !is_taken(snapshot, OwnKind::PodPolicy, name);
    entries(snapshot, Via::Policy)
        .map(|(object, place, entry)| (policy_name(object, place), entry))
        .filter(|(name, _)| is_free(name))
        .filter_map(|(name, entry)| {
            let policy = pod_policy::policy(&name, entry, &snapshot.settings.namespace)?;
            let binding = pod_policy::binding(&name);
            Some(((name.clone(), policy), (name, binding)))
        })
        .collect()
}

fn policy_name(object: &str, place: usize) -> String {
    format!("{POD_POLICY_PREFIX}{object}.{place}")
}

/// Whether the policy belongs to the object. Object names may contain dots, so a prefix match is
/// not enough.
fn is_policy_of(object: &str, name: &str) -> bool {
    let place =
        name.strip_prefix(POD_POLICY_PREFIX).and_then(|rest| rest.strip_prefix(object)?.strip_prefix('.'));
    place.is_some_and(|place| !place.is_empty() && place.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Counts the pods that the object's entries select.
pub(super) fn count(snapshot: &Snapshot<'_>, object: &Object<'_>) -> Option<SidecarStatus> {
    if object.written.spec.sidecars.is_empty() || object.deletion.is_some() {
        return None;
    }
    let (mut matching, mut consistent) = (0, 0);
    let mut owners: BTreeMap<(&str, &str, &str), u32> = BTreeMap::new();
    for (namespace, (kind, name), effect) in
        of_istio(snapshot, object).into_iter().chain(of_redirects(snapshot, object))
    {
        matching += 1;
        match effect {
            Effect::Consistent => consistent += 1,
            Effect::Stale => *owners.entry((namespace, kind, name)).or_default() += 1,
        }
    }
    let mut restart: Vec<StaleOwner> = owners
        .into_iter()
        .map(|((namespace, kind, name), pods)| StaleOwner {
            namespace: namespace.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            pods,
        })
        .collect();
    restart.sort_by_key(|owner| std::cmp::Reverse(owner.pods));
    restart.truncate(MOST_OWNERS);
    Some(SidecarStatus { matching, consistent, stale: matching - consistent, restart })
}

/// The namespace of a pod, the kind and the name of its owner, and its state.
type Counted<'s> = (&'s str, &'s (String, String), Effect);

fn of_istio<'s>(snapshot: &'s Snapshot<'_>, object: &Object<'_>) -> Vec<Counted<'s>> {
    let rules = Rules::new([object.written], snapshot.settings.namespace.clone()).for_istio();
    in_reach(snapshot, &rules, &snapshot.cluster.sidecars, |namespace, pod| {
        let effect = rules.effect(namespace, &pod.labels, &pod.annotations, &pod.sidecar)?;
        Some((&pod.owner, effect))
    })
}

/// The first entry of all objects decides about a pod, so the entries of all of them are needed.
fn of_redirects<'s>(snapshot: &'s Snapshot<'_>, object: &Object<'_>) -> Vec<Counted<'s>> {
    if object.written.spec.sidecars.iter().all(|entry| entry.redirect.is_none()) {
        return Vec::new();
    }
    let objects = snapshot.objects.iter().map(|object| object.written);
    let rules = Rules::new(objects, snapshot.settings.namespace.clone());
    in_reach(snapshot, &rules, &snapshot.cluster.redirects, |namespace, pod| {
        let metadata = (&pod.labels, &pod.annotations);
        let effect = pod_redirect::effect(&rules, object.name, namespace, metadata, &pod.shape)?;
        Some((&pod.owner, effect))
    })
}

/// The state of the pods in namespaces that an entry selects.
fn in_reach<'s, P>(
    snapshot: &'s Snapshot<'_>,
    rules: &Rules,
    pods: &'s BTreeMap<Key, P>,
    state: impl Fn(Namespace<'_>, &'s P) -> Option<(&'s (String, String), Effect)>,
) -> Vec<Counted<'s>> {
    let mut counted = Vec::new();
    for (name, labels) in &snapshot.cluster.namespaces {
        let namespace = Namespace { name, labels };
        if !rules.reaches(namespace) {
            continue;
        }
        let of_namespace = pods.range(Key::new(name.clone(), "")..);
        let of_namespace = of_namespace.take_while(|(key, _)| key.namespace == *name);
        counted.extend(of_namespace.filter_map(|(_, pod)| {
            let (owner, effect) = state(namespace, pod)?;
            Some((name.as_str(), owner, effect))
        }));
    }
    counted
}

/// The condition: status, reason and message. None if the object has no sidecars entries.
pub(super) fn said(
    snapshot: &Snapshot<'_>,
    object: &Object<'_>,
    status: Option<&SidecarStatus>,
) -> Option<(bool, Reason, String)> {
    let status = status?;
    let admission = &snapshot.cluster.admission;
    let asks = |via: Via| object.written.spec.sidecars.iter().any(|entry| entry.via == via);
    Some(if asks(Via::Policy) && !admission.serves_policies {
        let message = "spec.sidecars: via Policy needs MutatingAdmissionPolicy, which this API server does not serve (Kubernetes 1.36 does); use via Webhook";
        (false, Reason::PolicyUnavailable, message.to_owned())
    } else if asks(Via::Webhook) && admission.bundle.is_none() {
        let message = "the webhook has not published its CA bundle yet, so new pods are not changed; check that its Deployment is installed and ready";
        (false, Reason::WebhookUnavailable, message.to_owned())
    } else if let Some((kind, name)) = taken(snapshot, object) {
        let message = format!(
            "spec.sidecars: {kind} {name} does not belong to the operator and is not changed, so new pods may not be changed either: delete or rename it"
        );
        (false, Reason::NameTaken, message)
    } else if let Some(first) = status.restart.first() {
        (
            false,
            Reason::Stale,
            format!("{} of {} pods have to be recreated: {}", status.stale, status.matching, remedy(first)),
        )
    } else {
        (true, Reason::Consistent, format!("all {} pods are as spec.sidecars asks", status.matching))
    })
}

/// The Event for owners that newly need a restart.
pub(super) fn notice(
    before: Option<&SidecarStatus>,
    now: Option<&SidecarStatus>,
) -> Option<(Reason, String)> {
    let known = |owner: &StaleOwner| {
        before.is_some_and(|before| {
            let same = |known: &StaleOwner| {
                (&known.namespace, &known.kind, &known.name) == (&owner.namespace, &owner.kind, &owner.name)
            };
            before.restart.iter().any(same)
        })
    };
    let new: Vec<&StaleOwner> = now?.restart.iter().filter(|owner| !known(owner)).collect();
    let first = new.first()?;
    let more = if new.len() > 1 {
        format!(" (and {} more, see status.sidecars.restart)", new.len() - 1)
    } else {
        String::new()
    };
    Some((
        Reason::StaleSidecars,
        format!("pods are not as spec.sidecars asks until they are recreated: {}{more}", remedy(first)),
    ))
}

/// How to fix pods that are not as `spec.sidecars` asks: a command where possible.
pub fn remedy(owner: &StaleOwner) -> String {
    let StaleOwner { namespace, kind, name, .. } = owner;
    match kind.as_str() {
        "Deployment" | "StatefulSet" | "DaemonSet" => {
            format!("kubectl rollout restart -n {namespace} {}/{name}", kind.to_lowercase())
        }
        "Pod" => format!("delete and create pod {namespace}/{name}"),
        _ => format!("make {kind} {namespace}/{name} recreate its pods"),
    }
}
