//! The exposed Services that no object selects: how many of them lose the source IP. By itself this
//! is the default of Kubernetes, and no fault.

use super::Scope;
use crate::doctor::finding::{Code, Finding, Subject};
use crate::doctor::judgement::Arrival;
use crate::text::{count, cut};

/// So many Services are named.
const MAX_NAMES: usize = 5;

pub(super) fn check(scope: &Scope<'_>, found: &mut Vec<Finding>) {
    if scope.asked.is_some() {
        // The Service of `--service` has a finding of its own.
        return;
    }
    let lost: Vec<String> = scope
        .exposed()
        .filter(|(_, service, object)| object.is_none() && service.arrival() != Arrival::Client)
        .map(|(key, _, _)| key.to_string())
        .collect();
    if lost.is_empty() {
        return;
    }
    let exposed = u64::try_from(scope.exposed().count()).unwrap_or(u64::MAX);
    let (number, verb) = (lost.len(), if lost.len() == 1 { "loses" } else { "lose" });
    let line = format!(
        "{number} of {} {verb} the client's source IP: {}",
        count(exposed, "exposed Service"),
        cut(lost, MAX_NAMES, "").join(", ")
    );
    found.push(
        Finding::new(Code::AddressLost, Subject::cluster(), line)
            .because(
                "Their externalTrafficPolicy is Cluster, or their load balancer is a proxy. That is a fault only where something compares the address. \
                 The policies of the cluster are judged here; allow lists and logs of applications are not visible.",
            )
            .do_this("kubectl isp doctor --service NAMESPACE/NAME   # all findings that affect one of them"),
    );
}
