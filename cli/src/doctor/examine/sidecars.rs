//! Pods with a sidecar: whether its interception mode hands the source IP on, and the setting that
//! chose the mode.

use std::collections::BTreeMap;

use isp_api::names::{INTERCEPTION_MODE_ANNOTATION, NAME_LABEL, OPERATOR_FIELD_MANAGER};
use isp_api::preserve::{InterceptionMode, StaleOwner};
use isp_api::sidecar::{Effect, Namespace, POD_SECURITY_LABEL, Rules, SYSTEM_NAMESPACES, Sidecar};
use isp_plan::Key;
use isp_plan::plan::remedy;

use super::Scope;
use crate::doctor::cluster::Pod;
use crate::doctor::finding::{Code, Finding, Subject};
use crate::doctor::mesh::Mesh;
use crate::text::count;

/// The fault of the pods of one owner: the code, the owner, and the setting that caused it.
type Group = (Code, Key, String, String);

pub(super) fn check(scope: &Scope<'_>, found: &mut Vec<Finding>) {
    let own = scope.cluster.deployments.iter().find(|(_, deployment)| {
        deployment.labels.get(NAME_LABEL).is_some_and(|name| name == OPERATOR_FIELD_MANAGER)
    });
    let own = own.map_or("sourcepreserve-system", |(key, _)| key.namespace.as_str());
    let rules = Rules::new(scope.standing().map(|object| object.written), own).for_istio();
    if !rules.is_empty() {
        pod_security(scope, &rules, own, found);
        modes(scope, &rules, found);
    }
    hidden(scope, &rules, found);
}

/// Namespaces that would reject the sidecars that the entries ask for.
fn pod_security(scope: &Scope<'_>, rules: &Rules, own: &str, found: &mut Vec<Finding>) {
    for (name, labels) in &scope.cluster.namespaces {
        let Some(level) = labels.get(POD_SECURITY_LABEL).filter(|level| *level != "privileged") else {
            continue;
        };
        let excluded = name == own || SYSTEM_NAMESPACES.contains(&name.as_str());
        if excluded || !rules.reaches(Namespace { name, labels }) {
            continue;
        }
        found.push(
            Finding::new(
                Code::PodSecurityRefuses,
                Subject::new("Namespace", name),
                format!("spec.sidecars selects it, and it enforces Pod Security level {level}"),
            )
            .because("A sidecar in mode TPROXY needs NET_ADMIN, which this level rejects. Its pods are not changed, and their applications see 127.0.0.6.")
            .do_this(format!("kubectl label namespace {name} {POD_SECURITY_LABEL}=privileged --overwrite"))
            .do_this("or exclude the namespace from spec.sidecars"),
        );
    }
}

fn modes(scope: &Scope<'_>, rules: &Rules, found: &mut Vec<Finding>) {
    let mut groups: BTreeMap<Group, u32> = BTreeMap::new();
    for (key, pod) in &scope.cluster.pods {
        let Some(sidecar) = &pod.sidecar else { continue };
        let Some(labels) = scope.cluster.namespaces.get(&key.namespace) else { continue };
        let namespace = Namespace { name: &key.namespace, labels };
        let Some(wanted) = rules.wanted(namespace, &pod.labels) else { continue };
        let effect = rules.effect(namespace, &pod.labels, &pod.annotations, sidecar);
        let Some(code) = code(effect, wanted, pod, sidecar, labels.get(POD_SECURITY_LABEL)) else { continue };
        let by = Mesh::of(scope.cluster, pod).interception_mode(pod).by;
        let (kind, name) = &pod.owner;
        let how = match code {
            Code::ModeChosen => format!("work in mode {}, by {by}", sidecar.proxy),
            _ => format!("work in mode {}", sidecar.proxy),
        };
        *groups.entry((code, Key::new(&*key.namespace, &**name), kind.clone(), how)).or_default() += 1;
    }
    for ((code, key, kind, how), pods) in groups {
        let subject = Subject::new(&kind, &key);
        let finding = Finding::new(code, subject, format!("sidecars of {} {how}", count(pods, "pod")));
        let restart = remedy(&StaleOwner { namespace: key.namespace, kind, name: key.name, pods });
        found.push(match code {
            Code::AnnotationLies => finding
                .because(
                    "The pod is annotated with TPROXY, but its sidecar or its rules were injected before the annotation was set: the application does \
                     not see the client, and with istio-cni it receives no traffic at all.",
                )
                .do_this("kubectl get mutatingwebhookconfigurations   # 0-sourcepreserve.io must sort before istio-*")
                .do_this(restart),
            Code::ModeChosen => finding
                .because("spec.sidecars asks for TPROXY, but the pod template sets another mode, which takes precedence. The application sees 127.0.0.6.")
                .do_this("remove the setting from the pod template, or the pods from spec.sidecars"),
            _ => finding
                .because("They were created before the webhook was configured, or while it did not answer: the application sees 127.0.0.6 until they are recreated.")
                .do_this(restart),
        });
    }
}

fn code(
    effect: Option<Effect>,
    wanted: InterceptionMode,
    pod: &Pod,
    sidecar: &Sidecar,
    level: Option<&String>,
) -> Option<Code> {
    let annotated =
        pod.annotations.get(INTERCEPTION_MODE_ANNOTATION).is_some_and(|mode| mode == wanted.as_str());
    match effect {
        Some(Effect::Consistent) => None,
        Some(Effect::Stale) if annotated => Some(Code::AnnotationLies),
        Some(Effect::Stale) => Some(Code::SidecarsStale),
        None if level.is_some_and(|level| level != "privileged") || sidecar.proxy == wanted.as_str() => None,
        None => Some(Code::ModeChosen),
    }
}

/// Pods directly behind a Service whose sidecar sees the source IP, and the application does not.
fn hidden(scope: &Scope<'_>, rules: &Rules, found: &mut Vec<Finding>) {
    for (key, service, _) in scope.services() {
        if !service.facts.exposed {
            continue;
        }
        let hiding = scope.pods.of(key).into_iter().find(|(pod_key, pod)| {
            let labels = scope.cluster.namespaces.get(&pod_key.namespace);
            let wanted = labels
                .and_then(|labels| rules.wanted(Namespace { name: &pod_key.namespace, labels }, &pod.labels));
            wanted.is_none() && pod.sidecar.as_ref().is_some_and(Sidecar::hides_peer)
        });
        if let Some((pod_key, pod)) = hiding {
            let by = Mesh::of(scope.cluster, pod).interception_mode(pod).by;
            found.push(
                Finding::new(
                    Code::SidecarHides,
                    Subject::new("Service", key),
                    format!("its pods ({pod_key}) have a sidecar in mode REDIRECT, by {by}"),
                )
                .because("The sidecar sees the client, so ipBlocks works there; the application itself sees 127.0.0.6.")
                .do_this("if the application reads addresses: add an entry for its pods to spec.sidecars"),
            );
        }
    }
}
