//! Policies and lists that compare addresses, as doctor judges them.

use isp_plan::Key;

use super::line::{Line, State};
use crate::doctor::cluster::Cluster;
use crate::doctor::examine::Examination;
use crate::doctor::finding::Code;
use crate::doctor::kinds::Kind;

const CHECK: &str = "policy";

/// The kinds that hold policies and lists, and the pods that enforce them.
const HOLDERS: [Kind; 4] = [Kind::AuthorizationPolicy, Kind::NetworkPolicy, Kind::Ingress, Kind::Pod];

pub(super) fn lines(cluster: &Cluster, asked: Option<&Key>, examination: &Examination) -> Vec<Line> {
    let found = examination.findings.iter().filter(|finding| is_of_policy(finding.code));
    let mut lines: Vec<Line> = found.map(|finding| Line::of_finding(CHECK, finding)).collect();
    if let Some(last) = lines.iter_mut().rfind(|line| line.state == State::Failed) {
        let asked = asked.map_or_else(String::new, |key| format!(" --service {key}"));
        last.details.push(format!("kubectl isp doctor{asked}   # the path to each policy, hop by hop"));
    }
    lines.extend(
        examination
            .passed
            .iter()
            .filter(|passed| passed.check == "policies")
            .map(|passed| Line::passed(CHECK, passed.line.clone())),
    );
    let with_ranges = cluster.exposed(asked).filter(|(_, service)| {
        service.spec.load_balancer_source_ranges.as_ref().is_some_and(|ranges| !ranges.is_empty())
    });
    let number = with_ranges.count();
    if number > 0 {
        lines.push(Line::passed(CHECK, format!(
            "loadBalancerSourceRanges of {number} exposed Services: kube-proxy compares them before SNAT, so they see the client where packets are forwarded"
        )));
    }
    if lines.is_empty() && HOLDERS.into_iter().all(|kind| !cluster.not_looked_at.contains_key(&kind)) {
        lines.push(Line::passed(
            CHECK,
            "no policy and no allow list compares an address that is not the client's",
        ));
    }
    lines
}

/// Findings about policies, lists, and what leads them astray.
pub(super) fn is_of_policy(code: Code) -> bool {
    matches!(
        code,
        Code::PolicyOpen
            | Code::PolicyClosed
            | Code::PolicyMisled
            | Code::PolicyUnknown
            | Code::PolicyNotEnforced
            | Code::PolicyRangeUnreadable
            | Code::SourceRangeUnreadable
            | Code::SourceRangesOpen
            | Code::SourceRangesNodesOnly
            | Code::TrustedProxies
            | Code::ProxyProtocol
    )
}
