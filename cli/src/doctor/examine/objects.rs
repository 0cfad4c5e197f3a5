//! The objects: whether the operator has observed them, whether they contradict each other, and
//! whether they select anything.

use isp_api::Reason;
use isp_api::conditions::find;
use isp_api::names::{PROXY_NAME, SERVICE_PROXY_NAME_LABEL, condition};
use isp_api::preserve::{ConflictPolicy, Mode, Phase};
use isp_api::validate::{NodeIdentity, conflicts};
use isp_plan::ownership::{Declared, label_declared, policy_declared};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::SignedDuration;

use super::{Object, Scope};
use crate::doctor::finding::{Code, Finding, Severity, Subject};
use crate::doctor::kinds::Kind;
use crate::status::is_ready;

pub(super) fn check(scope: &Scope<'_>, found: &mut Vec<Finding>) {
    clashes(scope, found);
    for object in &scope.objects {
        let before = found.len();
        observed(object, found);
        if object.is_deleted {
            being_deleted(scope, object, found);
            continue;
        }
        targets(scope, object, found);
        declared(scope, object, found);
        paused(object, found);
        // The operator's own message is repeated only where no other finding explains it.
        if found.len() == before {
            not_ready(object, found);
        }
    }
}

fn observed(object: &Object<'_>, found: &mut Vec<Finding>) {
    let generation = object.written.metadata.generation;
    let seen = object.written.status.as_ref().and_then(|status| status.observed_generation);
    if seen.is_some() && (generation.is_none() || seen == generation) {
        return;
    }
    let line = match seen {
        None => "the operator has not observed it yet".to_owned(),
        Some(seen) => format!(
            "the operator has observed generation {seen} of it, not {}",
            generation.unwrap_or_default()
        ),
    };
    found.push(
        Finding::new(Code::NotObserved, object.subject(), line)
            .because("Its status describes an earlier state, and the operator does nothing for the current one.")
            .do_this("kubectl get pods -A -l app.kubernetes.io/name=sourcepreserve-operator   # whether the operator runs")
            .do_this("kubectl get lease -n sourcepreserve-system sourcepreserve-operator   # whether a replica holds the Lease"),
    );
}

/// Restoring takes minutes, even if a thousand nodes move back in waves.
const LONG: SignedDuration = SignedDuration::from_hours(1);

fn being_deleted(scope: &Scope<'_>, object: &Object<'_>, found: &mut Vec<Finding>) {
    let since = object.written.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    let long = since.filter(|since| scope.now.duration_since(*since) > LONG);
    let (line, severity) = match long {
        Some(since) => (format!("it has been terminating since {since}"), Severity::Warning),
        None => ("it is terminating".to_owned(), Severity::Note),
    };
    found.push(
        Finding::new(Code::BeingDeleted, object.subject(), line)
            .graded(severity)
            .because("The operator restores everything that the object changed, in a safe order, before it removes the finalizer.")
            .do_this(format!("kubectl isp status {}   # the progress", object.name))
            .do_this("kubectl apply -k manifests/cleanup   # only if the operator was uninstalled"),
    );
}

/// Of two objects that contradict each other, the older one is in effect.
fn clashes(scope: &Scope<'_>, found: &mut Vec<Finding>) {
    let cluster = scope.cluster;
    let services = cluster.service_identities();
    let nodes: Vec<NodeIdentity<'_>> =
        cluster.nodes.iter().map(|(name, node)| NodeIdentity { name, labels: &node.labels }).collect();
    for conflict in conflicts(scope.objects.iter().map(|object| object.written), &services, &nodes) {
        let subject = Subject::new("IngressSourcePreserve", &conflict.object);
        found.push(
            Finding::new(Code::ObjectsClash, subject, conflict.to_string())
                .because(format!("The older object, {}, is in effect; this one is not.", conflict.older))
                .do_this(format!("kubectl edit isp {}", conflict.object)),
        );
    }
}

fn targets(scope: &Scope<'_>, object: &Object<'_>, found: &mut Vec<Finding>) {
    if scope.cluster.knows(Kind::Node) && object.ingress_nodes.is_empty() {
        let selector = crate::text::selector(&object.written.spec.ingress_nodes.selector);
        let label = selector.split(',').next().unwrap_or_default().to_owned();
        let known: Vec<String> = scope.cluster.nodes.keys().cloned().collect();
        let nodes =
            if known.is_empty() { String::new() } else { format!(", of {}", crate::text::few(&known)) };
        found.push(
            Finding::new(Code::NoIngressNodes, object.subject(), format!("no node matches ingressNodes.selector ({selector})"))
                .because("No node would serve the Services with the client's source IP, so the operator does not begin. Services that it changed before are down.")
                .do_this(format!("kubectl label node <node> {label}   # each node that receives the traffic{nodes}")),
        );
    }
    if !scope.cluster.knows(Kind::Service) {
        return;
    }
    for missing in &object.missing {
        found.push(
            Finding::new(Code::ServiceMissing, object.subject(), format!("Service {missing} does not exist"))
                .because("The operator begins once all Services that the object names exist.")
                .do_this(format!("kubectl get services -n {}   # the Services that exist", missing.namespace))
                .do_this(format!("kubectl edit isp {}   # remove it from spec.services", object.name)),
        );
    }
    if object.missing.is_empty() && object.services.is_empty() {
        let elsewhere = scope.cluster.services.keys().any(|key| object.selects(scope.cluster, key));
        // If they belong to an older object, another finding says so.
        if !elsewhere {
            found.push(
                Finding::new(Code::ServiceMissing, object.subject(), "spec.services selects no Service")
                    .because("There is nothing to preserve.")
                    .do_this(format!("kubectl isp status {}", object.name))
                    .do_this(
                        "kubectl get services -A --show-labels   # add the label, or name a Service in spec.services",
                    ),
            );
        }
    }
}

/// A field manager that declares another value than the operator needs.
fn declared(scope: &Scope<'_>, object: &Object<'_>, found: &mut Vec<Finding>) {
    let status = object.written.status.as_ref();
    let conflict = status.and_then(|status| find(&status.conditions, condition::CONFLICT));
    let said = conflict.filter(|said| said.status == "True");
    let clash = |said: &Condition| {
        use Reason::{PoolDiffers, PoolOverlaps, ServiceClaimed, ServiceLabelClaimed};
        let reason = Reason::parse(&said.reason);
        matches!(reason, Some(PoolDiffers | PoolOverlaps | ServiceClaimed | ServiceLabelClaimed))
    };
    // Another proxy's Service has a finding of its own.
    let other_proxy = |said: &Condition| {
        let labels = object
            .services
            .iter()
            .filter_map(|key| scope.cluster.services.get(*key)?.facts.labels.get(SERVICE_PROXY_NAME_LABEL));
        said.message.contains(SERVICE_PROXY_NAME_LABEL) && labels.into_iter().any(|value| value != PROXY_NAME)
    };
    let mut lines: Vec<String> = said
        .into_iter()
        .filter(|said| !clash(said) && !other_proxy(said))
        .map(|said| said.message.clone())
        .collect();
    if lines.is_empty() && object.written.spec.conflict_policy == ConflictPolicy::Report {
        let label = object.written.service_label();
        lines.extend(object.services.iter().filter_map(|key| {
            let facts = &scope.cluster.services.get(*key)?.facts;
            let taken_over = || {
                let is_beside = object.written.spec.mode == Mode::Beside;
                is_beside.then(|| label_declared(facts, SERVICE_PROXY_NAME_LABEL, PROXY_NAME)).flatten()
            };
            let Declared { manager, field, value } = policy_declared(facts)
                .or_else(|| label_declared(facts, &label.key, &label.value))
                .or_else(taken_over)?;
            Some(format!("Service {key}: {manager:?} has declared {field} as {value}"))
        }));
    }
    for line in lines {
        let is_forced = !line.contains(SERVICE_PROXY_NAME_LABEL);
        let finding = Finding::new(Code::FieldDeclared, object.subject(), line)
            .because("Two writers of one field would revert each other forever, so the operator leaves the field to the manager that declared it.")
            .do_this("remove the field at its source (Git, Helm values, the applied file), and apply it again");
        let force = format!(
            r#"kubectl patch isp {} --type=merge -p '{{"spec":{{"conflictPolicy":"Force"}}}}'   # or let the operator take the field"#,
            object.name
        );
        // The operator takes a Service from no other proxy, whatever the policy is.
        found.push(if is_forced { finding.do_this(force) } else { finding });
    }
}

fn paused(object: &Object<'_>, found: &mut Vec<Finding>) {
    if object.written.spec.rollout.paused {
        found.push(
            Finding::new(Code::Paused, object.subject(), "spec.rollout.paused is true")
                .because(match object.written.spec.mode {
                    Mode::Filter => "No further wave begins: nodes without an agent, and nodes that join, serve the external addresses themselves.",
                    Mode::Beside => "The agents stay as they are: a new image of theirs is not rolled out.",
                })
                .do_this(format!(
                    r#"kubectl patch isp {} --type=merge -p '{{"spec":{{"rollout":{{"paused":false}}}}}}'"#,
                    object.name
                )),
        );
    }
}

fn not_ready(object: &Object<'_>, found: &mut Vec<Finding>) {
    let Some(status) = object.written.status.as_ref().filter(|_| !is_ready(object.written)) else { return };
    let said =
        [condition::DEGRADED, condition::PROGRESSING, condition::READY].into_iter().find_map(|type_| {
            let said = find(&status.conditions, type_)?;
            (said.status == if type_ == condition::READY { "False" } else { "True" }).then_some(said)
        });
    let message = said.map_or("the operator gives no reason", |said| said.message.as_str());
    let phase = status.phase.unwrap_or(Phase::Pending);
    found.push(
        Finding::new(Code::NotReady, object.subject(), format!("it is {phase:?}: {message}"))
            .because("Not all its Services keep the source IP yet.")
            .do_this(format!("kubectl isp status {}", object.name)),
    );
}
