//! Whatever is wrong with the rules of a pod.

mod bypass;
mod returning;

use serde::Serialize;

use super::{Explanation, Facts, Mode};
use crate::decode::PodRules;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Connections fail.
    Error,
    /// The proxy does not see all that it should.
    Warning,
}

/// The kinds of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Code {
    /// The manifest claims another mode than the one in force.
    ModeDiffers,
    /// The proxy's own connections come back to it.
    Loop,
    /// Connections to the pod reach the application past the proxy.
    InboundBypass,
    /// Connections of the pod leave it past the proxy.
    OutboundBypass,
    /// One address family has no redirect, and the other has.
    FamilyBypass,
    /// The application's answers leave the pod instead of returning to the proxy.
    AnswersLost,
    /// Some rules are not known, and the outcome depends on them.
    Unclear,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The kind.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
}

impl Finding {
    fn error(code: Code, message: String) -> Self {
        Self { code, severity: Severity::Error, message }
    }

    fn warning(code: Code, message: String) -> Self {
        Self { code, severity: Severity::Warning, message }
    }
}

/// All findings.
pub(super) fn all(rules: &PodRules, facts: &Facts, explanation: &Explanation) -> Vec<Finding> {
    let mut findings = claims(explanation);
    for family in &explanation.families {
        findings.extend(returning::loops(rules, facts, explanation, family));
        findings.extend(returning::lost_answers(rules, facts, explanation, family));
        findings.extend(bypass::inbound(facts, family));
        findings.extend(bypass::outbound(rules, facts, explanation, family));
    }
    findings.extend(families(explanation));
    findings.extend(unclear(explanation));
    // Both families of a pod often have the same rules.
    let mut distinct: Vec<Finding> = Vec::new();
    for finding in findings {
        if !distinct.contains(&finding) {
            distinct.push(finding);
        }
    }
    distinct
}

fn claims(explanation: &Explanation) -> Vec<Finding> {
    let mode = explanation.mode;
    let wrong = explanation.claims.iter().filter(|claim| claim.mode != mode && mode != Mode::Unclear);
    let finding = wrong.map(|claim| {
        let message = format!(
            "{} says {}, but the mode in force is {}; recreate the pod, or correct what says so",
            claim.by,
            claim.mode.name(),
            mode.name()
        );
        Finding::error(Code::ModeDiffers, message)
    });
    finding.collect()
}

fn families(explanation: &Explanation) -> Option<Finding> {
    let without = explanation.families.iter().find(|family| !family.is_redirected())?;
    let with = explanation.families.iter().find(|family| family.is_redirected())?;
    let message = format!(
        "connections to and from {} are redirected, those to and from {} pass no proxy",
        with.address, without.address
    );
    Some(Finding::warning(Code::FamilyBypass, message))
}

fn unclear(explanation: &Explanation) -> Option<Finding> {
    let targets = explanation
        .families
        .iter()
        .flat_map(|family| family.inbound.targets().chain(family.outbound.targets()));
    let because = super::distinct(targets.filter_map(|target| match target {
        super::Target::Unclear { because } => Some(because.join(", ")),
        _ => None,
    }));
    let message = format!("where connections go depends on {}, which is not known here", because.join(", "));
    (!because.is_empty()).then(|| Finding::warning(Code::Unclear, message))
}
