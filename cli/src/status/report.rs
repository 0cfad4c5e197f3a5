//! The report on objects: a table, then a block of a few lines for each object. A pure function of
//! the status that the operator and the agents wrote.

mod end;
mod nodes;
mod services;

use isp_api::conditions::find;
use isp_api::names::condition;
use isp_api::preserve::{IngressSourcePreserveStatus, Phase, SidecarStatus};
use isp_api::{IngressSourceNode, IngressSourcePreserve};
use isp_plan::plan::remedy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::advice::{NOT_OBSERVED, advice};
use super::nodes::Nodes;
use super::operator::Operator;
use super::table::table;
use crate::output::Symbols;
use crate::text::{Block, age, count, cut, wrap};

#[cfg(test)]
mod tests;

/// So many workloads to restart are shown, unless `-o wide` asks for all.
const MAX_RESTARTS: usize = 3;
const HINT: &str = " (-o wide shows all)";
const UNKNOWN: &str = "Unknown";

/// Everything beside the objects that a report depends on.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) reports: &'a [IngressSourceNode],
    pub(super) nodes: &'a Nodes,
    pub(super) operator: &'a Operator,
    pub(super) now: Timestamp,
    /// Whether nothing is left out.
    pub(super) wide: bool,
    pub(super) width: Option<usize>,
    pub(super) symbols: Symbols,
}

/// Whether the operator reports `Ready` for the current generation of the object.
pub(crate) fn is_ready(object: &IngressSourcePreserve) -> bool {
    let status = object.status.as_ref();
    let ready = status.and_then(|status| find(&status.conditions, condition::READY));
    ready.is_some_and(holds)
        && status.and_then(|status| status.observed_generation) == object.metadata.generation
}

pub(super) fn holds(condition: &Condition) -> bool {
    condition.status == "True"
}

/// The phase that the operator reports, or `Unknown` where its report is missing or outdated.
pub(super) fn phase(object: &IngressSourcePreserve, context: &Context<'_>) -> String {
    let status = object.status.as_ref();
    let current = status
        .filter(|status| status.observed_generation == object.metadata.generation)
        .filter(|_| !context.operator.is_down());
    current.and_then(|status| status.phase).map_or_else(|| UNKNOWN.to_owned(), word)
}

fn word(phase: Phase) -> String {
    format!("{phase:?}")
}

/// The whole report.
pub(super) fn report(objects: &[IngressSourcePreserve], context: &Context<'_>) -> String {
    let width = context.width.unwrap_or(usize::MAX);
    let notice = context.operator.notice(context.now);
    let notice = notice.map(|notice| wrap(&notice, width, 2).join("\n") + "\n\n");
    let blocks: Vec<String> =
        objects.iter().map(|object| ObjectReport { object, context }.render()).collect();
    format!("{}{}\n{}", notice.unwrap_or_default(), table(objects, context), blocks.join("\n"))
}

/// The block of one object.
struct ObjectReport<'a> {
    object: &'a IngressSourcePreserve,
    context: &'a Context<'a>,
}

impl ObjectReport<'_> {
    fn render(&self) -> String {
        let name = self.object.name_any();
        let Some(status) = self.object.status.as_ref().filter(|status| status.phase.is_some()) else {
            let mut block = self.block(&format!("{name}: {UNKNOWN}"));
            block.field("waiting", [self.since_creation("the operator has not observed the object yet")]);
            self.advise([NOT_OBSERVED], &mut block);
            return block.into_text();
        };
        if phase(self.object, self.context) == UNKNOWN {
            return self.outdated(&name, status);
        }
        let heading = format!("{name}: {}", self.heading(status));
        let mut block = self.block(&heading);
        self.body(status, &mut block);
        self.end(status, &mut block);
        block.into_text()
    }

    fn block(&self, heading: &str) -> Block {
        Block::new(heading, self.context.width)
    }

    /// `Ready for 3d4h, <message>`.
    fn heading(&self, status: &IngressSourcePreserveStatus) -> String {
        let phase = status.phase.map(word).unwrap_or_default();
        let decisive = match status.phase {
            Some(Phase::Progressing) => condition::PROGRESSING,
            Some(Phase::Degraded) => condition::DEGRADED,
            Some(Phase::Conflict) => condition::CONFLICT,
            _ => condition::READY,
        };
        let since = match status.phase {
            Some(Phase::Terminating) => self.object.metadata.deletion_timestamp.as_ref().map(|time| time.0),
            _ => find(&status.conditions, decisive).map(|found| found.last_transition_time.0),
        };
        let since = since.map(|since| format!(" for {}", age(since, self.context.now))).unwrap_or_default();
        let ready = find(&status.conditions, condition::READY).filter(|ready| holds(ready));
        let message = ready.map(|ready| format!(", {}", ready.message)).unwrap_or_default();
        format!("{phase}{since}{message}")
    }

    /// The status is about another generation of the object, or no operator keeps it up to date.
    fn outdated(&self, name: &str, status: &IngressSourcePreserveStatus) -> String {
        let phase = status.phase.map(word).unwrap_or_default();
        let generation = self.object.metadata.generation;
        let (heading, waiting) = if status.observed_generation == generation {
            let waiting = "an operator must run, the status may be outdated".to_owned();
            (format!("{name}: {UNKNOWN}, was {phase} when the operator last ran"), waiting)
        } else {
            let (seen, now) =
                (status.observed_generation.unwrap_or_default(), generation.unwrap_or_default());
            let waiting = format!("the operator has not observed generation {now} of the object yet");
            (format!("{name}: {UNKNOWN}, was {phase} at generation {seen}"), waiting)
        };
        let mut block = self.block(&heading);
        self.body(status, &mut block);
        block.field("waiting", [waiting]);
        self.advise([NOT_OBSERVED], &mut block);
        block.into_text()
    }

    fn since_creation(&self, text: &str) -> String {
        match self.object.creation_timestamp() {
            Some(created) => format!("{text} (created {} ago)", age(created.0, self.context.now)),
            None => text.to_owned(),
        }
    }

    fn body(&self, status: &IngressSourcePreserveStatus, block: &mut Block) {
        block.field("services", self.services(status));
        block.field("nodes", self.pools(status));
        block.commands("sidecars", status.sidecars.iter().flat_map(|sidecars| self.sidecars(sidecars)));
    }

    /// Commands for these reasons, each command once.
    fn advise<'r>(&self, reasons: impl IntoIterator<Item = &'r str>, block: &mut Block) {
        let mut commands: Vec<String> = Vec::new();
        for line in reasons.into_iter().flat_map(|reason| advice(self.object, self.context.nodes, reason)) {
            if !commands.contains(&line) {
                commands.push(line);
            }
        }
        block.commands("to do", commands);
    }

    fn sidecars(&self, sidecars: &SidecarStatus) -> Vec<String> {
        let SidecarStatus { matching, consistent, stale, restart } = sidecars;
        let line = format!("{}, {consistent} consistent, {stale} stale", count(*matching, "pod"));
        let max = self.max(MAX_RESTARTS);
        let commands =
            restart.iter().map(|owner| format!("{}   # {}", remedy(owner), count(owner.pods, "pod")));
        std::iter::once(line).chain(cut(commands.collect(), max, HINT)).collect()
    }

    fn max(&self, usual: usize) -> usize {
        if self.context.wide { usize::MAX } else { usual }
    }
}
