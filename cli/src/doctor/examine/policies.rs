//! Istio's policies that compare addresses.

use isp_plan::Key;

use super::Scope;
use super::addresses::{Policy, judged};
use super::stand_ins::StandIns;
use super::ways::Ways;
use crate::doctor::finding::{Code, Finding, Subject};
use crate::doctor::judgement::Action;
use crate::doctor::kinds::Kind;
use crate::doctor::policy::{AuthorizationPolicy, Use};

pub(super) fn check(scope: &Scope<'_>, ways: &Ways<'_>, stand_ins: &StandIns, found: &mut Vec<Finding>) {
    for (key, policy) in &scope.cluster.policies {
        let alternatives = policy.alternatives();
        if alternatives.is_empty() {
            continue;
        }
        let Some(ways) = ways.to_policy(key, policy) else {
            found.extend(not_enforced(scope, key));
            continue;
        };
        if scope.asked.is_none() || !ways.is_empty() {
            found.extend(unreadable(key, policy, &alternatives));
        }
        let policy = Policy {
            subject: Subject::new("AuthorizationPolicy", key),
            action: policy.action(),
            alternatives: &alternatives,
        };
        found.extend(judged(scope, stand_ins, &policy, &ways));
    }
}

/// An entry that Istio cannot parse. Istio then ignores the rule.
fn unreadable(key: &Key, policy: &AuthorizationPolicy, alternatives: &[Vec<Use>]) -> Option<Finding> {
    let used = alternatives.iter().flatten().find(|used| used.unreadable.is_some())?;
    let text = used.unreadable.as_deref()?;
    let follows = match policy.action() {
        Action::Allow => "clients that it should admit are rejected",
        Action::Deny | Action::Custom => "clients that it should reject are admitted",
        Action::Audit => "it records nothing",
    };
    let line = format!("{}, {text:?} in {} is not a CIDR range", policy.action().as_str(), used.name);
    Some(
        Finding::new(Code::PolicyRangeUnreadable, Subject::new("AuthorizationPolicy", key), line)
            .because(format!("Istio ignores a rule that it cannot parse: {follows}."))
            .do_this(format!(
                "kubectl edit authorizationpolicy -n {} {}   # 198.51.100.0/24, 2001:db8::/32",
                key.namespace, key.name
            )),
    )
}

/// A policy that no proxy enforces.
fn not_enforced(scope: &Scope<'_>, key: &Key) -> Option<Finding> {
    let cluster = scope.cluster;
    if scope.asked.is_some() || !cluster.knows(Kind::Pod) {
        return None;
    }
    let gone = cluster.knows(Kind::Namespace) && !cluster.namespaces.contains_key(&key.namespace);
    let line = if gone {
        format!("it compares addresses, but its namespace {} does not exist", key.namespace)
    } else {
        "it compares addresses, but no pod that it selects has an Istio proxy".to_owned()
    };
    Some(
        Finding::new(Code::PolicyNotEnforced, Subject::new("AuthorizationPolicy", key), line)
            .because("It has no effect. Pods that start without a sidecar are not protected by it.")
            .do_this(format!(
                "kubectl get pods -n {} --show-labels   # check its selector and the sidecar injection",
                key.namespace
            )),
    )
}
