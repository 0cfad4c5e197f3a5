//! Policies that compare addresses, and how they judge in each stage; the findings.

use std::collections::BTreeMap;

use isp_report::model::{Finding, Judgement, Policy, Severity, Verdict};

use super::state::State;
use crate::doctor::{self, Code};

/// The policies: `AuthorizationPolicies` that compare addresses, and all others with a finding.
pub(super) fn policies(stages: &[State<'_>]) -> Vec<Policy> {
    let mut rules: BTreeMap<String, String> = BTreeMap::new();
    let verdicts: Vec<BTreeMap<String, Judgement>> = stages.iter().map(judgements).collect();
    for subject in verdicts.iter().flat_map(BTreeMap::keys) {
        rules.entry(subject.clone()).or_default();
    }
    let istio = stages.first().into_iter().flat_map(|now| &now.cluster.policies);
    for (key, policy) in istio {
        let alternatives = policy.alternatives();
        if let Some(used) = alternatives.iter().flatten().next() {
            let more = if alternatives.iter().flatten().count() > 1 { ", and more" } else { "" };
            let rule = format!("{} {} {}{more}", policy.action().as_str(), used.name, used.texts.join(", "));
            rules.insert(format!("AuthorizationPolicy {key}"), rule);
        }
    }
    let right = || Judgement {
        verdict: Verdict::Right,
        reason: "It compares the client's own address, or no client from outside reaches it.".to_owned(),
    };
    let policy = |(subject, rule): (String, String)| {
        let judgements = verdicts.iter().map(|all| all.get(&subject).cloned().unwrap_or_else(right));
        let judgements = judgements.collect();
        let (kind, name) = subject.split_once(' ').unwrap_or(("", &subject));
        Policy { kind: kind.to_owned(), name: name.to_owned(), rule, judgements }
    };
    rules.into_iter().map(policy).collect()
}

/// The judgements of a stage that are not right, the worst of each policy.
fn judgements(state: &State<'_>) -> BTreeMap<String, Judgement> {
    let mut found: BTreeMap<String, Judgement> = BTreeMap::new();
    for finding in &state.examination.findings {
        let verdict = match finding.code {
            Code::PolicyOpen => Verdict::FailsOpen,
            Code::PolicyClosed => Verdict::FailsClosed,
            Code::PolicyMisled
            | Code::PolicyUnknown
            | Code::PolicyNotEnforced
            | Code::PolicyRangeUnreadable => Verdict::Unknown,
            _ => continue,
        };
        let judgement = Judgement { verdict, reason: finding.line.clone() };
        let known = found.entry(finding.subject.to_string()).or_insert_with(|| judgement.clone());
        if gravity(verdict) > gravity(known.verdict) {
            *known = judgement;
        }
    }
    found
}

fn gravity(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Right => 0,
        Verdict::Unknown => 1,
        Verdict::FailsClosed => 2,
        Verdict::FailsOpen => 3,
    }
}

/// The findings about the present state.
pub(super) fn findings(now: &State<'_>) -> Vec<Finding> {
    let findings = now.examination.findings.iter().map(|finding| Finding {
        code: finding.code.as_str().to_owned(),
        severity: match finding.severity {
            doctor::Severity::Error => Severity::Error,
            doctor::Severity::Warning => Severity::Warning,
            doctor::Severity::Note => Severity::Note,
        },
        subject: finding.subject.to_string(),
        line: finding.line.clone(),
        reason: finding.reason.clone(),
        remedy: finding.remedy.clone(),
    });
    findings.collect()
}
