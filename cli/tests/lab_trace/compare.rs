//! Compares what `trace` says with real connections.
//!
//! A destination is asked several times, and the ends are a set. Each end must be one that the
//! trace knows, and each way of the trace must be seen. With session affinity, a client sees only
//! some of them. A case that differs is traced and tried again, more often and more patiently: on a
//! busy machine an answer comes late, and with several endpoints chance may leave one out.

use std::path::Path;
use std::time::Duration;

use futures_util::{StreamExt, future, stream};

use crate::cases::{Case, Target};
use crate::figures::Figures;
use crate::observed::{Effort, Observed, connect};
use crate::traced::{Expected, Traced, trace};
use crate::world::{World, Written};

const FIRST: Effort =
    Effort { answers: 16, timeout: Duration::from_secs(1), patience: Duration::from_millis(2500) };
const AGAIN: Effort =
    Effort { answers: 120, timeout: Duration::from_secs(3), patience: Duration::from_secs(12) };
/// How often a case that differs is tried again.
const TIMES: usize = 3;
/// Traces at once.
const AT_ONCE: usize = 4;

/// Traces and tries the cases of a state.
pub(crate) async fn compare(world: &World, services: &[Written], cases: &[Case], figures: &mut Figures) {
    let kubeconfig = world.web.lab.kubeconfig();
    let mut open: Vec<&Case> = cases.iter().collect();
    for time in 0..=TIMES {
        let effort = if time == 0 { FIRST } else { AGAIN };
        // Load balancers repeat their health checks as well.
        world.balance(services).await;
        let (traced, observed) =
            future::join(trace_all(&kubeconfig, &open), connect(&world.web.lab, &open, effort)).await;
        let mut differing = Vec::new();
        let mut differences = Vec::new();
        for ((case, traced), observed) in open.iter().copied().zip(&traced).zip(&observed) {
            figures.connections += observed.connections;
            let service = &services[case.service].generated;
            match disagreement(case, service.sticky, traced, observed) {
                None => figures.take(case, service, traced, observed),
                Some(why) => {
                    differing.push(case);
                    differences.push(describe(case, &services[case.service], traced, observed, &why));
                }
            }
        }
        open = differing;
        if open.is_empty() {
            return;
        }
        if time == TIMES {
            figures.differences.extend(differences);
        } else {
            figures.tried_again += open.len();
        }
    }
}

async fn trace_all(kubeconfig: &Path, cases: &[&Case]) -> Vec<Traced> {
    let all = cases.iter().map(|case| trace(kubeconfig, case));
    stream::iter(all).buffered(AT_ONCE).collect().await
}

/// In what trace and connections differ.
fn disagreement(case: &Case, sticky: bool, traced: &Traced, observed: &Observed) -> Option<String> {
    let is_unclear = traced.ends.iter().any(|end| matches!(end, Expected::Unclear(_)));
    // The only documented limit that these clusters have.
    if is_unclear != (case.target == Target::ProxyingIp) {
        return Some("unclear without a documented reason, or clear in spite of one".to_owned());
    }
    if observed.own != Some(traced.own) {
        return Some(format!("the client sends from {:?}, not from {}", observed.own, traced.own));
    }
    if let Some(end) = observed.ends.iter().find(|end| !traced.ends.iter().any(|known| known.allows(end))) {
        return Some(format!("the trace does not know: {end}"));
    }
    let is_seen = |known: &&Expected| observed.ends.iter().any(|end| known.allows(end));
    let missing = traced.ends.iter().find(|known| !is_seen(known)).filter(|_| !sticky && !is_unclear);
    missing.map(|known| format!("never seen: {known}"))
}

fn describe(case: &Case, service: &Written, traced: &Traced, observed: &Observed, why: &str) -> String {
    let list = |ends: Vec<String>| ends.join("\n      ");
    format!(
        "{case}\n    {why}\n    seen:\n      {}\n    traced:\n      {}\n    {service:?}",
        list(observed.ends.iter().map(ToString::to_string).collect()),
        list(traced.ends.iter().map(ToString::to_string).collect()),
    )
}
