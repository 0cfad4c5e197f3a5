//! The outcome of a plan: the operator's own plan, carried out action by action on a simulated
//! cluster. Pure. `render` prints it for people, its serialized form is `plan -o json`.

use std::collections::{BTreeMap, BTreeSet};

use isp_api::IngressSourcePreserve;
use isp_api::conditions::find;
use isp_api::names::condition;
use isp_api::validate::NodeIdentity;
use isp_api::view::{View, view};
use isp_plan::action::without_revision;
use isp_plan::cluster::Node;
use isp_plan::simulate::Simulation;
use isp_plan::{Action, Cluster, Settings};
use k8s_openapi::jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::describe::{Sentence, describe};
use super::merge::Change;
use super::redirects::{self, Existing, RedirectForecast};
use crate::status::is_ready;

#[cfg(test)]
mod tests;

/// Everything that would happen.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Forecast {
    /// The objects of the file, and how each of them ends.
    pub(super) objects: Vec<ObjectForecast>,
    /// What the plan assumes, because a dump does not have it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
    /// Nodes whose agent fails now. The forecast assumes that it keeps failing.
    pub(super) failing_agents: Vec<String>,
    /// The steps in order. The actions of one step run in any order.
    pub(super) steps: Vec<Step>,
    /// Set when the plan does not come to rest, which is a bug.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unsettled: Option<String>,
}

/// An object of the file.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectForecast {
    /// Its name.
    pub(super) name: String,
    pub(super) change: Change,
    /// Whether it becomes or stays `Ready`.
    pub(super) ready: bool,
    /// Whether it is `Ready` now, and no step is left.
    #[serde(skip)]
    pub(super) stays_ready: bool,
    /// The reason of the `Ready` condition where the object does not become `Ready`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// The message of the `Ready` condition.
    pub(super) message: String,
    /// Nodes whose view of the object's Services changes.
    pub(super) views: Vec<ViewChange>,
    /// What new pods get by entries with `redirect`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) redirects: Vec<RedirectForecast>,
    /// The pods that exist and get it only when they are recreated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) recreate: Option<Existing>,
}

/// Nodes that end with another view of the object's Services.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct ViewChange {
    /// The view now.
    pub(super) from: View,
    /// The view at the end.
    pub(super) to: View,
    /// The nodes, by name.
    pub(super) nodes: Vec<String>,
}

/// Actions that run in any order.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Step {
    /// Counted from 1.
    #[serde(rename = "step")]
    pub(super) number: usize,
    /// How long the operator waits before the step, where the plan itself waits for a deadline.
    pub(super) wait_seconds: i64,
    /// The actions of the step.
    pub(super) actions: Vec<PlannedAction>,
    #[serde(skip)]
    at: Timestamp,
    #[serde(skip)]
    round: usize,
}

/// An action of the operator.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlannedAction {
    /// The kind of action, as in the operator's log.
    pub(super) action: &'static str,
    /// The object that it changes, as in the operator's log: kind, namespace and name.
    pub(super) object: String,
    /// The action as a sentence.
    pub(super) description: String,
    /// Whether the operator would do it even if the file were not applied.
    pub(super) pending_without_file: bool,
    #[serde(skip)]
    pub(super) sentence: Sentence,
}

impl PlannedAction {
    /// The name of the object after its kind.
    pub(super) fn name(&self) -> &str {
        self.object.split_once('/').map_or(self.object.as_str(), |(_, name)| name)
    }
}

impl Forecast {
    /// Whether applying the file changes an object, or what the operator does.
    pub(super) fn changes(&self) -> bool {
        let mut actions = self.steps.iter().flat_map(|step| &step.actions);
        self.objects.iter().any(|object| object.change != Change::Unchanged)
            || actions.any(|action| !action.pending_without_file)
    }

    /// Whether every object of the file becomes `Ready`.
    pub(super) fn ready(&self) -> bool {
        self.unsettled.is_none() && self.objects.iter().all(|object| object.ready)
    }
}

/// Simulates the operator. `cluster` already has the objects of the file in place of `before`.
pub(super) fn forecast(
    cluster: Cluster,
    before: &BTreeMap<String, IngressSourcePreserve>,
    settings: Settings,
    now: Timestamp,
    changes: &[(String, Change)],
) -> Forecast {
    let pending = pending_actions(Cluster { objects: before.clone(), ..cluster.clone() }, &settings, now);
    let own_namespace = settings.namespace.clone();
    let mut simulation = Simulation::new(cluster, settings, now);
    let failing_agents = simulation.keep_trouble();
    let mut steps: Vec<Step> = Vec::new();
    let settled = simulation.settle(|world, round, action| {
        if !matches!(action, Action::Status { .. }) {
            record(&mut steps, now, round, world, action, &pending);
        }
    });
    let end = &simulation.cluster;
    let objects = changes.iter().map(|(name, change)| {
        let stays_ready = before.get(name).is_some_and(is_ready) && steps.is_empty();
        let (ready, reason, message) = verdict(end, name);
        let views = if ready { view_changes(end, before, name) } else { Vec::new() };
        let (name, change) = (name.clone(), *change);
        let (redirects, recreate) = redirects::of(end, &own_namespace, &name);
        ObjectForecast { name, change, ready, stays_ready, reason, message, views, redirects, recreate }
    });
    Forecast {
        objects: objects.collect(),
        notes: Vec::new(),
        failing_agents,
        unsettled: settled.err().map(|unsettled| unsettled.to_string()),
        steps,
    }
}

/// The actions that the operator still has to do without the file.
fn pending_actions(cluster: Cluster, settings: &Settings, now: Timestamp) -> BTreeSet<String> {
    let mut simulation = Simulation::new(cluster, settings.clone(), now);
    simulation.keep_trouble();
    let mut actions = BTreeSet::new();
    // If this does not settle, neither does the simulation with the file, which reports it.
    let _ = simulation.settle(|_, _, action| {
        actions.insert(without_revision(&action.to_string()).to_owned());
    });
    actions
}

fn record(
    steps: &mut Vec<Step>,
    start: Timestamp,
    round: usize,
    world: &Simulation,
    action: &Action,
    pending: &BTreeSet<String>,
) {
    if steps.last().is_none_or(|last| last.round != round) {
        let last = steps.last().map_or(start, |last| last.at);
        let wait_seconds = world.now.duration_since(last).as_secs();
        let number = steps.len() + 1;
        steps.push(Step { number, wait_seconds, actions: Vec::new(), at: world.now, round });
    }
    let Some(step) = steps.last_mut() else { return };
    let target = action.target().to_string();
    let object = without_revision(&target).to_owned();
    let name = object.split_once('/').map_or(object.as_str(), |(_, name)| name);
    let sentence = describe(&world.cluster, action);
    step.actions.push(PlannedAction {
        action: action.kind(),
        description: sentence.about(name, 1),
        pending_without_file: pending.contains(without_revision(&action.to_string())),
        object,
        sentence,
    });
}

/// The nodes that end with another view of the object's Services, by the change.
fn view_changes(
    cluster: &Cluster,
    before: &BTreeMap<String, IngressSourcePreserve>,
    name: &str,
) -> Vec<ViewChange> {
    let seen = |node_name: &str, node: &Node, objects: &BTreeMap<String, IngressSourcePreserve>| {
        let node = NodeIdentity { name: node_name, labels: &node.labels };
        let views = view(node, objects.get(name)).objects;
        views.first().map(|own| own.view).unwrap_or_default()
    };
    let mut changed: BTreeMap<(View, View), Vec<String>> = BTreeMap::new();
    for (node_name, node) in &cluster.nodes {
        let change = (seen(node_name, node, before), seen(node_name, node, &cluster.objects));
        if change.0 != change.1 {
            changed.entry(change).or_default().push(node_name.clone());
        }
    }
    changed.into_iter().map(|((from, to), nodes)| ViewChange { from, to, nodes }).collect()
}

/// Whether an object ends `Ready`, else the reason, and the message.
pub(super) fn verdict(cluster: &Cluster, name: &str) -> (bool, Option<String>, String) {
    let Some(object) = cluster.objects.get(name) else {
        let message = "the object is being deleted; apply the file again once it is gone";
        return (false, Some("Deleted".to_owned()), message.to_owned());
    };
    let status = object.status.clone().unwrap_or_default();
    let Some(ready) = find(&status.conditions, condition::READY) else {
        let message = "the operator reports no Ready condition";
        return (false, Some("Unknown".to_owned()), message.to_owned());
    };
    let is_ready = is_ready(object);
    (is_ready, (!is_ready).then(|| ready.reason.clone()), ready.message.clone())
}
