//! The end of a block: what the operator waits for and since when, problems, and what to do.

use isp_api::Reason;
use isp_api::conditions::find;
use isp_api::names::condition;
use isp_api::preserve::IngressSourcePreserveStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{ObjectReport, holds};
use crate::text::{Block, age};

const STEPS: [&str; 5] = [
    condition::CHECKED,
    condition::AGENTS_READY,
    condition::LABELLED,
    condition::ACKNOWLEDGED,
    condition::LOCAL_POLICY_SET,
];

impl ObjectReport<'_> {
    pub(super) fn end(&self, status: &IngressSourcePreserveStatus, block: &mut Block) {
        let progressing = find(&status.conditions, condition::PROGRESSING).filter(|found| holds(found));
        block.field("waiting", progressing.map(|found| self.waiting(status, found)));
        let problems = problems(status, progressing.is_some());
        block.field("problem", problems.iter().map(|problem| self.problem(problem)));
        self.advise(progressing.into_iter().chain(problems).map(|found| found.reason.as_str()), block);
        if self.context.wide {
            let lines = status.conditions.iter().map(|found| {
                let age = age(found.last_transition_time.0, self.context.now);
                let Condition { type_, status, reason, message, .. } = found;
                format!("{type_:19} {status:7} {age:>5}  {reason}: {message}")
            });
            block.field("conditions", lines);
        }
    }

    /// The first step that is not done, since when, and the operator's message.
    fn waiting(&self, status: &IngressSourcePreserveStatus, progressing: &Condition) -> String {
        let terminating = self.object.metadata.deletion_timestamp.is_some();
        let mut steps = STEPS.iter().filter_map(|step| find(&status.conditions, step));
        let awaited = steps.find(|step| !holds(step)).filter(|_| !terminating);
        let age = |condition: &Condition| age(condition.last_transition_time.0, self.context.now);
        match awaited {
            Some(step) => format!("{} for {}: {}", age(step), step.type_, progressing.message),
            None => format!("{}: {}", age(progressing), progressing.message),
        }
    }

    fn problem(&self, problem: &Condition) -> String {
        format!("{} (for {})", problem.message, age(problem.last_transition_time.0, self.context.now))
    }
}

/// The conditions that report a problem, the gravest first, each message once.
fn problems(status: &IngressSourcePreserveStatus, progressing: bool) -> Vec<&Condition> {
    let condition = |type_: &str| find(&status.conditions, type_);
    let stopped = condition(condition::READY).filter(|ready| !holds(ready) && !progressing);
    let conflict = condition(condition::CONFLICT).filter(|found| holds(found));
    let degraded = condition(condition::DEGRADED).filter(|found| holds(found));
    // The condition of the step that failed gives the cause; the others only repeat that it failed.
    let agents = condition(condition::AGENTS_READY).filter(|agents| agents.reason == Reason::WaveFailed);
    let repeats = |found: &&Condition| found.reason == Reason::WaveFailed || found.reason == Reason::Degraded;
    let degraded = match agents {
        Some(agents) => Some(degraded.filter(|found| !repeats(found)).unwrap_or(agents)),
        None => degraded,
    };
    let stopped = stopped.filter(|found| agents.is_none() || !repeats(found));
    let sidecars = condition(condition::SIDECARS_CONSISTENT)
        .filter(|found| !holds(found) && found.reason != Reason::Stale);
    let mut problems: Vec<&Condition> = Vec::new();
    for found in [conflict, degraded, stopped, sidecars].into_iter().flatten() {
        if !problems.iter().any(|before| before.message == found.message) {
            problems.push(found);
        }
    }
    problems
}
