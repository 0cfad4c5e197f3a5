//! `doctor --rules`: whether the packet rules of pods with a sidecar are what the pods say. The
//! rules are read from the nodes, so this is no part of the pure examination.

use std::collections::BTreeMap;

use isp_plan::Key;
use isp_pod_rules::explain::Explanation;

use super::cluster::Cluster;
use super::finding::{Code, Finding, Severity, Subject};
use super::selection::PodIndex;
use crate::cli::HelperArgs;
use crate::connection::Connection;
use crate::error::CommandError;
use crate::rules::{Reader, RulesError};

#[cfg(test)]
mod tests;

/// One pod with a sidecar of each workload: the others have the same template. With a Service, only
/// those behind it.
pub(super) fn samples(cluster: &Cluster, service: Option<&Key>) -> Vec<Key> {
    let index = PodIndex::of_cluster(cluster);
    let pods: Vec<_> = match service {
        Some(service) => index.of(service),
        None => cluster.pods.iter().collect(),
    };
    let mut found = BTreeMap::new();
    for (key, pod) in pods {
        if pod.sidecar.is_some() && !pod.addresses.is_empty() {
            found.entry((&key.namespace, &pod.owner)).or_insert_with(|| key.clone());
        }
    }
    found.into_values().collect()
}

/// Reads the rules of pods, one after the other, and compares.
pub(super) async fn compare(
    connection: &Connection,
    helper: &HelperArgs,
    pods: &[Key],
) -> Result<Vec<Finding>, CommandError> {
    let mut findings = Vec::new();
    if pods.is_empty() {
        return Ok(findings);
    }
    let reader = Reader::open(connection, helper).await?;
    for pod in pods {
        match reader.explain(pod).await {
            Ok(explained) => findings.extend(judge(pod, &explained.explanation)),
            // It ended meanwhile.
            Err(CommandError::Rules(RulesError::NoPod(_) | RulesError::NotRunning { .. })) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(findings)
}

/// One finding for each problem with the rules of a pod.
fn judge(pod: &Key, explanation: &Explanation) -> Vec<Finding> {
    let finding = explanation.findings.iter().map(|problem| {
        let severity = match problem.severity {
            isp_pod_rules::explain::Severity::Error => Severity::Error,
            isp_pod_rules::explain::Severity::Warning => Severity::Warning,
        };
        Finding::new(Code::RulesDiffer, Subject::new("Pod", pod), problem.message.clone())
            .because("The packet rules in the pod's network decide which connections its proxy gets, whatever the manifest says.")
            .do_this(format!("kubectl isp rules {pod}   # all of its rules, explained"))
            .do_this("recreate the pod; if that does not help, find the program that writes its rules")
            .graded(severity)
    });
    finding.collect()
}
