//! What would come of a plan: the operator's own, carried out on a simulated cluster, action by action. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use isp_api::IngressSourcePreserve;
use isp_api::conditions::find;
use isp_api::names::{AGENT_NAME, AGENT_POOL_LABEL, condition};
use isp_api::preserve::TrafficPolicy;
use isp_api::validate::NodeIdentity;
use isp_api::view::{View, view};
use isp_plan::action::{NodeStep, ServiceStep, without_revision};
use isp_plan::cluster::Node;
use isp_plan::simulate::Simulation;
use isp_plan::{Action, Cluster, Settings};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::merge::Change;
use crate::status::is_ready;

#[cfg(test)]
mod tests;

/// How many targets of a kind are named; of more, the first two.
const MOST_TARGETS: usize = 4;
/// How many rounds a wave has: the images are pulled, the nodes go over, they have gone over.
const WAVE: usize = 3;
/// How many equal waves are told one by one.
const MOST_WAVES: usize = 3;
/// A wait that is worth a word.
const LONG: SignedDuration = SignedDuration::from_secs(20);

/// What would happen.
pub(super) struct Forecast {
    pub(super) text: String,
    /// Whether every object of the file becomes `Ready`.
    pub(super) ready: bool,
}

/// What is done at one time.
struct Round {
    number: usize,
    at: Timestamp,
    groups: Vec<Group>,
}

/// Equal actions on several things.
struct Group {
    kind: &'static str,
    effect: String,
    /// Whether they are left to do without the file, too.
    anyway: bool,
    targets: Vec<String>,
}

/// What would happen to this cluster, in which the objects of the file are already, instead of those `before`.
pub(super) fn forecast(
    cluster: Cluster,
    before: &BTreeMap<String, IngressSourcePreserve>,
    settings: Settings,
    now: Timestamp,
    changes: &[(String, Change)],
) -> Forecast {
    let anyway = left_to_do(Cluster { objects: before.clone(), ..cluster.clone() }, &settings, now);
    let mut simulation = Simulation::new(cluster, settings, now);
    let troubled = simulation.keep_trouble();
    let mut rounds: Vec<Round> = Vec::new();
    let settled = simulation.settle(|world, round, action| {
        if !matches!(action, Action::Status { .. }) {
            note(&mut rounds, round, world, action, &anyway);
        }
    });

    let mut text = String::new();
    for (name, change) in changes {
        let line = match change {
            Change::Created => "would be created",
            Change::Changed => "would be changed",
            Change::Unchanged => "is in the cluster as it is in the file",
        };
        let _ = writeln!(text, "{name} {line}");
    }
    for node in troubled {
        let _ = writeln!(text, "the agent of node {node} is in trouble, and is taken to stay so");
    }
    if rounds.is_empty() {
        text.push_str("the operator would change nothing\n");
    }
    text.push_str(&tell(&rounds, now));
    let mut ready = true;
    for (name, _) in changes {
        let was_ready = before.get(name).is_some_and(is_ready) && rounds.is_empty();
        let (line, fine) = verdict(&simulation.cluster, name, was_ready);
        let _ = writeln!(text, "{line}");
        ready &= fine;
        if fine {
            text.push_str(&views(&simulation.cluster, before, name));
        }
    }
    if let Err(unsettled) = settled {
        let _ =
            writeln!(text, "the plan does not come to rest, which is a fault of this program: {unsettled}");
        ready = false;
    }
    Forecast { text, ready }
}

/// What the operator has still to do without the file.
fn left_to_do(cluster: Cluster, settings: &Settings, now: Timestamp) -> BTreeSet<String> {
    let mut simulation = Simulation::new(cluster, settings.clone(), now);
    simulation.keep_trouble();
    let mut actions = BTreeSet::new();
    // Should it not come to rest, neither does what is told.
    let _ = simulation.settle(|_, _, action| {
        actions.insert(without_revision(&action.to_string()).to_owned());
    });
    actions
}

fn note(
    rounds: &mut Vec<Round>,
    number: usize,
    world: &Simulation,
    action: &Action,
    left_to_do: &BTreeSet<String>,
) {
    if rounds.last().is_none_or(|last| last.number != number) {
        rounds.push(Round { number, at: world.now, groups: Vec::new() });
    }
    let Some(Round { groups, .. }) = rounds.last_mut() else { return };
    let (kind, effect) = (action.kind(), effect(&world.cluster, action));
    let target = action.target();
    let target = target.split_once('/').map_or(target.as_str(), |(_, name)| name);
    let target = without_revision(target).to_owned();
    let anyway = left_to_do.contains(without_revision(&action.to_string()));
    let equal = |group: &&mut Group| group.kind == kind && group.effect == effect && group.anyway == anyway;
    match groups.iter_mut().find(equal) {
        Some(group) => group.targets.push(target),
        None => groups.push(Group { kind, effect, anyway, targets: vec![target] }),
    }
}

/// The rounds in order. Waves that are all alike are told by the first of them.
fn tell(rounds: &[Round], now: Timestamp) -> String {
    let mut text = String::new();
    let (mut place, mut last) = (0, now);
    while let Some(round) = rounds.get(place) {
        let waves = waves(&rounds[place..]);
        if waves <= MOST_WAVES {
            text.push_str(&lines(place + 1, round, round.at.duration_since(last)));
            (place, last) = (place + 1, round.at);
            continue;
        }
        let (first, rest) = rounds[place..place + WAVE * waves].split_at(WAVE);
        for (ahead, round) in first.iter().enumerate() {
            text.push_str(&lines(place + ahead + 1, round, round.at.duration_since(last)));
            last = round.at;
        }
        let targets =
            rest.iter().step_by(WAVE).flat_map(|round| &round.groups).flat_map(|group| &group.targets);
        let targets: Vec<String> = targets.cloned().collect();
        let _ = writeln!(
            text,
            "{:>3}  the same in {} more waves: {}",
            place + WAVE + 1,
            waves - 1,
            few(&targets)
        );
        place += WAVE * waves;
        last = rest.last().map_or(last, |round| round.at);
    }
    text
}

/// How often the first rounds follow each other without a wait, with other targets.
fn waves(rounds: &[Round]) -> usize {
    let alike = |a: &Round, b: &Round| {
        let same = |(a, b): (&Group, &Group)| (a.kind, &a.effect, a.anyway) == (b.kind, &b.effect, b.anyway);
        a.groups.len() == b.groups.len() && a.groups.iter().zip(&b.groups).all(same)
    };
    let swift = rounds.windows(2).take_while(|pair| pair[1].at.duration_since(pair[0].at) <= LONG).count();
    let waves = rounds[..rounds.len().min(swift + 1)].chunks_exact(WAVE);
    waves.take_while(|wave| wave.iter().zip(rounds).all(|(a, b)| alike(a, b))).count()
}

fn lines(number: usize, round: &Round, waited: SignedDuration) -> String {
    let mut text = String::new();
    if waited > LONG {
        let _ = writeln!(text, "     {} s later", waited.as_secs());
    }
    for (place, Group { kind, effect, anyway, targets }) in round.groups.iter().enumerate() {
        let head = if place == 0 { number.to_string() } else { String::new() };
        let targets = few(targets);
        let effect = if effect.is_empty() { String::new() } else { format!(": {effect}") };
        let anyway = if *anyway { " (without the file, too)" } else { "" };
        let _ = writeln!(text, "{head:>3}  {kind} {targets}{effect}{anyway}");
    }
    text
}

/// Names, cut short.
fn few(names: &[String]) -> String {
    match names {
        [first, second, ..] if names.len() > MOST_TARGETS => {
            format!("{first}, {second}, … ({})", names.len())
        }
        few => few.join(", "),
    }
}

/// On which nodes another part of the object's Services is seen in the end.
fn views(cluster: &Cluster, before: &BTreeMap<String, IngressSourcePreserve>, name: &str) -> String {
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
    let lines = changed.iter().map(|((was, is), nodes)| {
        format!("     its Services, seen from {}: {was:?} -> {is:?}\n", few(nodes))
    });
    lines.collect()
}

/// What an action changes, where its kind does not say it.
fn effect(cluster: &Cluster, action: &Action) -> String {
    match action {
        Action::ShapeService { step: ServiceStep::Label, shape, .. } => {
            shape.label.as_ref().map(ToString::to_string).unwrap_or_default()
        }
        Action::ShapeService { step: ServiceStep::Localise, service, .. } => {
            let service = cluster.services.get(service);
            let before = service.and_then(|service| service.policy).unwrap_or(TrafficPolicy::Cluster);
            let balanced = service.is_some_and(|service| service.balanced);
            // What users of a plan are most likely to miss: nodes elsewhere no longer answer it.
            let warning = if balanced { ", its load balancer must follow healthCheckNodePort" } else { "" };
            format!("externalTrafficPolicy {before:?} -> Local{warning}")
        }
        Action::ShapeService { step: ServiceStep::GiveUpPolicy | ServiceStep::FallBack, .. } => {
            "externalTrafficPolicy Local -> Cluster".to_owned()
        }
        Action::ShapeNode { step: NodeStep::HandOver, shape, .. } => {
            let pool = shape.pool.as_deref().unwrap_or_default();
            format!("to the agent of pool {pool}")
        }
        Action::ShapeService { step: ServiceStep::Open, .. } => "every node shows it".to_owned(),
        Action::ShapeNode { step: NodeStep::RollBack | NodeStep::GiveUpImages, shape, .. } => {
            shape.failure.as_ref().map(|failure| failure.reason.clone()).unwrap_or_default()
        }
        Action::KeepOff { .. } => format!("required node affinity, {AGENT_POOL_LABEL} DoesNotExist"),
        Action::ApplyPool { daemon_set, .. } => {
            image(daemon_set).map(|image| format!("image {image}")).unwrap_or_default()
        }
        _ => String::new(),
    }
}

fn image(set: &DaemonSet) -> Option<&str> {
    let pod = set.spec.template.spec.as_ref()?;
    let mut containers = pod.init_containers.iter().flatten().chain(&pod.containers);
    containers.find(|container| container.name == AGENT_NAME)?.image.as_deref()
}

/// How it ends for an object, and whether that is `Ready`.
fn verdict(cluster: &Cluster, name: &str, was_ready: bool) -> (String, bool) {
    let Some(object) = cluster.objects.get(name) else {
        let line = format!(
            "{name} does not become Ready: it is being deleted, and is gone in the end; apply the file then"
        );
        return (line, false);
    };
    let status = object.status.clone().unwrap_or_default();
    let Some(said) = find(&status.conditions, condition::READY) else {
        return (format!("{name} does not become Ready: nothing is said about it"), false);
    };
    if is_ready(object) {
        let turn = if was_ready { "stays" } else { "becomes" };
        return (format!("{name} {turn} Ready: {}", said.message), true);
    }
    (format!("{name} does not become Ready: {}: {}", said.reason, said.message), false)
}
