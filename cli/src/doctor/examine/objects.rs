//! The objects themselves: whether the operator has seen them, whether they can both have their way, whether they select anything.

use isp_api::conditions::find;
use isp_api::names::condition;
use isp_api::preserve::{ConflictPolicy, Phase};
use isp_api::validate::{NodeIdentity, ServiceIdentity, conflicts};
use isp_plan::ownership::{Declared, label_declared, policy_declared};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::SignedDuration;

use super::{Object, Scene};
use crate::doctor::finding::{Code, Finding, Severity, Subject};
use crate::doctor::kinds::Kind;
use crate::status::is_ready;

pub(super) fn check(scene: &Scene<'_>, found: &mut Vec<Finding>) {
    clashes(scene, found);
    for object in &scene.objects {
        let before = found.len();
        observed(object, found);
        if object.going {
            being_deleted(scene, object, found);
            continue;
        }
        targets(scene, object, found);
        declared(scene, object, found);
        paused(object, found);
        // What the operator says itself is worth telling only where nothing says why.
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
        None => "the operator has not looked at it yet".to_owned(),
        Some(seen) => format!(
            "the operator has looked at generation {seen} of it, and not at {}",
            generation.unwrap_or_default()
        ),
    };
    found.push(
        Finding::new(Code::NotObserved, object.subject(), line)
            .because("What its status says is about another state of it, and nothing is done for this one.")
            .do_this("kubectl get pods -A -l app.kubernetes.io/name=sourcepreserve-operator   # whether the operator runs")
            .do_this("kubectl get lease -n sourcepreserve-system sourcepreserve-operator   # whether one of its replicas leads"),
    );
}

/// Putting everything back takes minutes, also where a thousand nodes are handed back in waves.
const LONG: SignedDuration = SignedDuration::from_hours(1);

fn being_deleted(scene: &Scene<'_>, object: &Object<'_>, found: &mut Vec<Finding>) {
    let since = object.written.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    let long = since.filter(|since| scene.now.duration_since(*since) > LONG);
    let (line, severity) = match long {
        Some(since) => (format!("it is being deleted since {since}"), Severity::Warning),
        None => ("it is being deleted".to_owned(), Severity::Note),
    };
    found.push(
        Finding::new(Code::BeingDeleted, object.subject(), line)
            .graded(severity)
            .because("The operator puts back what the object changed, in a safe order, before it lets the object go.")
            .do_this(format!("kubectl isp status {}   # how far it has come", object.name))
            .do_this("kubectl apply -k manifests/cleanup   # only where the operator is gone for good"),
    );
}

/// Of two objects that want the same, the older one has it.
fn clashes(scene: &Scene<'_>, found: &mut Vec<Finding>) {
    let cluster = scene.cluster;
    let services: Vec<ServiceIdentity<'_>> = cluster
        .services
        .iter()
        .map(|(key, service)| ServiceIdentity {
            namespace: &key.namespace,
            name: &key.name,
            labels: &service.facts.labels,
        })
        .collect();
    let nodes: Vec<NodeIdentity<'_>> =
        cluster.nodes.iter().map(|(name, node)| NodeIdentity { name, labels: &node.labels }).collect();
    for conflict in conflicts(scene.objects.iter().map(|object| object.written), &services, &nodes) {
        let subject = Subject::new("IngressSourcePreserve", &conflict.object);
        found.push(
            Finding::new(Code::ObjectsClash, subject, conflict.to_string())
                .because(format!(
                    "The older one, {}, stands; this one does nothing meanwhile.",
                    conflict.older
                ))
                .do_this(format!("kubectl edit isp {}", conflict.object)),
        );
    }
}

fn targets(scene: &Scene<'_>, object: &Object<'_>, found: &mut Vec<Finding>) {
    if scene.cluster.knows(Kind::Node) && object.ingress_nodes.is_empty() {
        let selector = crate::text::selector(&object.written.spec.ingress_nodes.selector);
        let label = selector.split(',').next().unwrap_or_default().to_owned();
        found.push(
            Finding::new(Code::NoIngressNodes, object.subject(), format!("no node is an ingress node ({selector})"))
                .because("Nowhere would the Services be served with the client's address, so nothing is begun; what was begun is down.")
                .do_this(format!("kubectl label node NODE {label}   # the nodes that take in the traffic")),
        );
    }
    if !scene.cluster.knows(Kind::Service) {
        return;
    }
    for missing in &object.missing {
        found.push(
            Finding::new(Code::ServiceMissing, object.subject(), format!("Service {missing} does not exist"))
                .because("An object is begun when all Services that it names are there.")
                .do_this(format!("kubectl get services -n {}   # what there is", missing.namespace))
                .do_this(format!("kubectl edit isp {}   # take it out of spec.services", object.name)),
        );
    }
    if object.missing.is_empty() && object.services.is_empty() {
        let elsewhere = scene.cluster.services.keys().any(|key| object.selects(scene.cluster, key));
        // Those that it would have belong to an older object, which is said already.
        if !elsewhere {
            found.push(
                Finding::new(Code::ServiceMissing, object.subject(), "spec.services selects no Service")
                    .because("There is nothing to preserve.")
                    .do_this(format!("kubectl isp status {}", object.name))
                    .do_this(
                        "kubectl get services -A --show-labels   # label one, or name it in spec.services",
                    ),
            );
        }
    }
}

/// A manager that declares another value than the one that is needed.
fn declared(scene: &Scene<'_>, object: &Object<'_>, found: &mut Vec<Finding>) {
    let status = object.written.status.as_ref();
    let conflict = status.and_then(|status| find(&status.conditions, condition::CONFLICT));
    let said = conflict.filter(|said| said.status == "True");
    let clash = |said: &Condition| {
        use isp_api::names::reason::{POOL_DIFFERS, POOL_OVERLAPS, SERVICE_CLAIMED, SERVICE_LABEL_CLAIMED};
        [POOL_DIFFERS, POOL_OVERLAPS, SERVICE_CLAIMED, SERVICE_LABEL_CLAIMED].contains(&said.reason.as_str())
    };
    let mut lines: Vec<String> =
        said.into_iter().filter(|said| !clash(said)).map(|said| said.message.clone()).collect();
    if lines.is_empty() && object.written.spec.conflict_policy == ConflictPolicy::Report {
        let label = object.written.service_label();
        lines.extend(object.services.iter().filter_map(|key| {
            let facts = &scene.cluster.services.get(*key)?.facts;
            let Declared { manager, field, value } =
                policy_declared(facts).or_else(|| label_declared(facts, &label.key, &label.value))?;
            Some(format!("Service {key}: {manager:?} has declared {field} as {value}"))
        }));
    }
    for line in lines {
        found.push(
            Finding::new(Code::FieldDeclared, object.subject(), line)
                .because("Two writers of one field would undo each other's work for ever, so the operator leaves it to whoever declared it.")
                .do_this("remove the field there (Git, Helm values, the file that was applied), and apply it again")
                .do_this(format!(
                    r#"kubectl patch isp {} --type=merge -p '{{"spec":{{"conflictPolicy":"Force"}}}}'   # or take it all the same"#,
                    object.name
                )),
        );
    }
}

fn paused(object: &Object<'_>, found: &mut Vec<Finding>) {
    if object.written.spec.rollout.paused {
        found.push(
            Finding::new(Code::Paused, object.subject(), "spec.rollout.paused is true")
                .because("No other wave is begun: nodes that have no agent yet, or that join, answer the external addresses themselves.")
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
    let message = said.map_or("the operator does not say why", |said| said.message.as_str());
    let phase = status.phase.unwrap_or(Phase::Pending);
    found.push(
        Finding::new(Code::NotReady, object.subject(), format!("it is {phase:?}: {message}"))
            .because("The address is not, or not yet, kept for all its Services.")
            .do_this(format!("kubectl isp status {}", object.name)),
    );
}
