//! The story of objects, in a few lines each. A pure function of what the operator and the agents have written down.

use isp_api::conditions::find;
use isp_api::names::condition;
use isp_api::node::AcknowledgedView;
use isp_api::preserve::{
    IngressSourcePreserveStatus, Phase, PoolStatus, ServiceState, ServiceStatus, SidecarStatus,
};
use isp_api::view::View;
use isp_api::{IngressSourceNode, IngressSourcePreserve};
use isp_plan::plan::remedy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::advice::advice;
use crate::text::{Block, count, cut};

#[cfg(test)]
mod tests;

const STEPS: [&str; 5] = [
    condition::CHECKED,
    condition::AGENTS_READY,
    condition::LABELLED,
    condition::ACKNOWLEDGED,
    condition::LOCAL_POLICY_SET,
];

/// How many lines of a kind are shown, unless everything is asked for.
const MOST_SERVICES: usize = 8;
const MOST_NODES: usize = 5;
const MOST_RESTARTS: usize = 3;
const WAVE_FAILED: &str = "WaveFailed";
const WIDE: &str = " (-o wide shows all)";

/// Whether the operator says so, and about the object as it is.
pub(crate) fn is_ready(object: &IngressSourcePreserve) -> bool {
    let status = object.status.as_ref();
    let said = status.and_then(|status| find(&status.conditions, condition::READY));
    said.is_some_and(holds)
        && status.and_then(|status| status.observed_generation) == object.metadata.generation
}

fn holds(condition: &Condition) -> bool {
    condition.status == "True"
}

/// How objects stand, one block each.
pub(super) fn tell(objects: &[IngressSourcePreserve], nodes: &[IngressSourceNode], wide: bool) -> String {
    let blocks: Vec<String> = objects.iter().map(|object| Story { object, nodes, wide }.tell()).collect();
    blocks.join("\n")
}

struct Story<'a> {
    object: &'a IngressSourcePreserve,
    nodes: &'a [IngressSourceNode],
    wide: bool,
}

impl Story<'_> {
    fn tell(&self) -> String {
        let name = self.object.name_any();
        let generation = self.object.metadata.generation;
        let Some(status) = self.object.status.as_ref().filter(|status| status.phase.is_some()) else {
            let mut block = Block::headed(&format!("{name}: Unknown"));
            block.field("waits for", ["the operator, which has not looked at it yet".to_owned()]);
            block.field("to do", advice(self.object, "NotObserved"));
            return block.0;
        };
        let phase = status.phase.map(word).unwrap_or_default();
        if status.observed_generation != generation {
            let (seen, now) =
                (status.observed_generation.unwrap_or_default(), generation.unwrap_or_default());
            let mut block = Block::headed(&format!("{name}: Unknown, was {phase} at generation {seen}"));
            self.middle(status, &mut block);
            let line = format!("the operator, which has not looked at generation {now} yet");
            block.field("waits for", [line]);
            block.field("to do", advice(self.object, "NotObserved"));
            return block.0;
        }
        let ready = find(&status.conditions, condition::READY).filter(|ready| holds(ready));
        let message = ready.map(|ready| format!(", {}", ready.message)).unwrap_or_default();
        let mut block = Block::headed(&format!("{name}: {phase}{message}"));
        self.middle(status, &mut block);
        self.end(status, &mut block);
        block.0
    }

    /// How far it has come.
    fn middle(&self, status: &IngressSourcePreserveStatus, block: &mut Block) {
        if status.phase != Some(Phase::Terminating) {
            block.field("steps", [steps(status)]);
        }
        block.field("services", self.services(status));
        block.field("nodes", self.pools(status));
        block.field("sidecars", status.sidecars.iter().flat_map(|sidecars| self.sidecars(sidecars)));
    }

    /// What it waits for, what is wrong, and what to do.
    fn end(&self, status: &IngressSourcePreserveStatus, block: &mut Block) {
        let said = |type_: &str| find(&status.conditions, type_);
        let progressing = said(condition::PROGRESSING).filter(|progressing| holds(progressing));
        block.field("waits for", progressing.iter().map(|progressing| progressing.message.clone()));
        let stopped = said(condition::READY).filter(|ready| !holds(ready) && progressing.is_none());
        let conflict = said(condition::CONFLICT).filter(|said| holds(said));
        let degraded = said(condition::DEGRADED).filter(|said| holds(said));
        // The step that failed says why; what follows from it says that it did.
        let agents = said(condition::AGENTS_READY).filter(|agents| agents.reason == WAVE_FAILED);
        let failed = |said: &&Condition| said.reason == WAVE_FAILED || said.reason == "Degraded";
        let degraded = match agents {
            Some(agents) => Some(degraded.filter(|said| !failed(said)).unwrap_or(agents)),
            None => degraded,
        };
        let stopped = stopped.filter(|said| agents.is_none() || !failed(said));
        let sidecars =
            said(condition::SIDECARS_CONSISTENT).filter(|said| !holds(said) && said.reason != "Stale");
        let mut wrong: Vec<&Condition> = Vec::new();
        for found in [conflict, degraded, stopped, sidecars].into_iter().flatten() {
            if !wrong.iter().any(|before| before.message == found.message) {
                wrong.push(found);
            }
        }
        block.field("wrong", wrong.iter().map(|wrong| wrong.message.clone()));
        let reasons = progressing.into_iter().chain(wrong).map(|said| said.reason.as_str());
        let mut todo: Vec<String> = Vec::new();
        for line in reasons.flat_map(|reason| advice(self.object, reason)) {
            if !todo.contains(&line) {
                todo.push(line);
            }
        }
        block.field("to do", todo);
        if self.wide {
            block.field(
                "conditions",
                status.conditions.iter().map(|said| {
                    format!("{:19} {:5} {}: {}", said.type_, said.status, said.reason, said.message)
                }),
            );
        }
    }

    fn services(&self, status: &IngressSourcePreserveStatus) -> Vec<String> {
        let services = &status.services;
        if services.is_empty() {
            return vec!["none".to_owned()];
        }
        let name = |service: &ServiceStatus| format!("{}/{}", service.namespace, service.name);
        let width = services.iter().map(|service| name(service).len()).max().unwrap_or_default();
        // Those that are not where they should be come first when some are left out.
        let mut shown: Vec<&ServiceStatus> = services.iter().collect();
        let most = if self.wide { usize::MAX } else { MOST_SERVICES };
        if shown.len() > most {
            shown.sort_by_key(|service| {
                service.state == ServiceState::Preserved && service.ingress_endpoints > 0
            });
        }
        let lines = shown.iter().map(|service| {
            let addresses = match service.addresses.as_slice() {
                [] => "no external address".to_owned(),
                addresses => addresses.join(" "),
            };
            let endpoints = format!("{} on ingress nodes", count(service.ingress_endpoints, "endpoint"));
            let original = service
                .original
                .as_ref()
                .filter(|_| self.wide)
                .map(|original| format!(", was {:?}", original.external_traffic_policy));
            // What is wrong with the whole is told at its end.
            let told = |message: &&String| status.conditions.iter().any(|said| said.message == **message);
            let message = service.message.as_ref().filter(|message| !told(message));
            let message = message.map(|message| format!(": {message}"));
            format!(
                "{:width$}  {:?}, {addresses}, {endpoints}{}{}",
                name(service),
                service.state,
                original.unwrap_or_default(),
                message.unwrap_or_default()
            )
        });
        cut(lines.collect(), most, WIDE)
    }

    fn pools(&self, status: &IngressSourcePreserveStatus) -> Vec<String> {
        let pools = &status.node_pools;
        if pools.is_empty() {
            return vec!["none needs an agent".to_owned()];
        }
        let most = if self.wide { usize::MAX } else { MOST_NODES };
        pools
            .iter()
            .flat_map(|pool| {
                let behind = cut(self.behind(&pool.name), most, WIDE);
                std::iter::once(pool_line(pool)).chain(behind.into_iter().map(|line| format!("  {line}")))
            })
            .collect()
    }

    /// What the agents of a pool have not acknowledged.
    fn behind(&self, pool: &str) -> Vec<String> {
        let uid = self.object.uid().unwrap_or_default();
        let generation = self.object.metadata.generation.unwrap_or_default();
        let of_pool = self.nodes.iter().filter_map(|node| {
            let status = node.status.as_ref().filter(|status| status.pool == pool)?;
            let view = status.views.iter().find(|view| view.uid == uid);
            let behind = if status.proxy_connected {
                lag(view, generation)?
            } else {
                "kube-proxy is not connected to the agent".to_owned()
            };
            // An ingress node has an agent for the sake of other objects.
            let full = view.is_some_and(|view| view.view == View::Full);
            (!full).then(|| format!("{}: {behind}", node.name_any()))
        });
        of_pool.collect()
    }

    fn sidecars(&self, sidecars: &SidecarStatus) -> Vec<String> {
        let SidecarStatus { matching, consistent, stale, restart } = sidecars;
        let line = format!("{}, {consistent} consistent, {stale} stale", count(*matching, "pod"));
        let most = if self.wide { usize::MAX } else { MOST_RESTARTS };
        let commands =
            restart.iter().map(|owner| format!("{} ({})", remedy(owner), count(owner.pods, "pod")));
        std::iter::once(line).chain(cut(commands.collect(), most, WIDE)).collect()
    }
}

/// What keeps an agent's view from being acknowledged.
pub(crate) fn lag(view: Option<&AcknowledgedView>, generation: i64) -> Option<String> {
    match view {
        None => Some("the agent does not know the object yet".to_owned()),
        Some(view) if view.generation != generation => {
            Some(format!("has generation {} of the object, not {generation}", view.generation))
        }
        Some(view) if !view.relisted => Some("kube-proxy has not read its Services anew".to_owned()),
        Some(view) if view.programmed == Some(false) => {
            Some("the kernel's rules have not followed yet".to_owned())
        }
        Some(_) => None,
    }
}

fn pool_line(pool: &PoolStatus) -> String {
    let PoolStatus { name, nodes, handed_over, ready, failed, updated } = pool;
    let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
    let outdated = updated.map_or(0, |updated| handed_over.saturating_sub(updated));
    let outdated = if outdated > 0 { format!(", {outdated} of a former revision") } else { String::new() };
    format!(
        "pool {name}: {}, {handed_over} handed over, {ready} ready{outdated}{failed}",
        count(*nodes, "node")
    )
}

fn steps(status: &IngressSourcePreserveStatus) -> String {
    let (done, left): (Vec<&str>, Vec<&str>) =
        STEPS.iter().partition(|step| find(&status.conditions, step).is_some_and(holds));
    let number = format!("{} of {}", done.len(), STEPS.len());
    match (done.as_slice(), left.as_slice()) {
        (_, []) => format!("{number} done"),
        ([], left) => format!("{number} done; left: {}", left.join(", ")),
        (done, left) => format!("{number} done: {}; left: {}", done.join(", "), left.join(", ")),
    }
}

fn word(phase: Phase) -> String {
    format!("{phase:?}")
}
