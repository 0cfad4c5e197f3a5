//! Whether the project is installed, and what doctor says about the installation.

use isp_api::names::{NAME_LABEL, OPERATOR_FIELD_MANAGER};

use super::line::Line;
use super::{platform, policies};
use crate::doctor::cluster::Cluster;
use crate::doctor::examine::Examination;
use crate::doctor::finding::{Code, Finding, Severity};
use crate::doctor::kinds::Kind;
use crate::status::is_ready;
use crate::text::few;

const CHECK: &str = "installation";

pub(super) fn lines(cluster: &Cluster, examination: &Examination) -> Vec<Line> {
    let has_operator = cluster
        .deployments
        .values()
        .any(|one| one.labels.get(NAME_LABEL).is_some_and(|name| name == OPERATOR_FIELD_MANAGER));
    let proofs = [Kind::Deployment, Kind::IngressSourcePreserve];
    let is_unknown = proofs.iter().any(|kind| cluster.not_looked_at.contains_key(kind));
    let mut lines = Vec::new();
    match (has_operator, cluster.objects.len()) {
        (false, 0) if is_unknown => {
            lines.push(Line::notice(
                CHECK,
                "whether the project is installed is not known, see the missing rights",
            ));
        }
        (false, 0) => lines.push(Line::passed(CHECK, "nothing of this project was found")),
        (true, 0) => lines
            .push(Line::passed(CHECK, "the operator is installed; there is no IngressSourcePreserve yet")),
        (_, number) => {
            let ready = cluster.objects.iter().filter(|object| is_ready(object)).count();
            let names = few(&names(cluster));
            let text = format!(
                "the project is installed; {ready} of {number} IngressSourcePreserves are Ready: {names}"
            );
            let line = if ready == number { Line::passed(CHECK, text) } else { Line::notice(CHECK, text) };
            lines.push(
                line.detail("kubectl isp status   # the state of each object")
                    .detail("kubectl isp doctor   # faults of the installation"),
            );
        }
    }
    let others: Vec<&Finding> = examination.findings.iter().filter(|finding| is_other(finding)).collect();
    if let Some(worst) = others.first() {
        let mut codes: Vec<String> = others.iter().map(|finding| finding.code.as_str().to_owned()).collect();
        codes.dedup();
        let line =
            format!("doctor finds {} that concern the installation ({})", number(others.len()), few(&codes));
        let line = Line::failed(CHECK, line).about(worst.subject.clone()).coded(worst.code);
        lines.push(line.detail(format!("{}: {}", worst.subject, worst.line)).detail("kubectl isp doctor"));
    }
    lines
}

fn names(cluster: &Cluster) -> Vec<String> {
    let names = cluster.objects.iter().filter_map(|object| object.metadata.name.as_deref());
    names.map(str::to_owned).collect()
}

fn number(length: usize) -> String {
    if length == 1 { "1 fault".to_owned() } else { format!("{length} faults") }
}

/// An error or a warning that no other section shows.
fn is_other(finding: &Finding) -> bool {
    // Other sections have their own lines for these.
    let has_line = matches!(
        finding.code,
        Code::NotPreserved | Code::AddressLost | Code::IpModeProxy | Code::SidecarHides | Code::NotLookedAt
    );
    let shown = has_line || platform::is_of_kube_proxy(finding.code) || policies::is_of_policy(finding.code);
    finding.severity != Severity::Note && !shown
}
