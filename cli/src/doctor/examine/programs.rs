//! The project's own programs: whether the operator and the webhook run, and whether API servers
//! trust the webhook and call it before Istio's injector.

use isp_api::names::{
    NAME_LABEL, OBJECT_WEBHOOK_CONFIGURATION, OPERATOR_FIELD_MANAGER, POD_WEBHOOK_CONFIGURATION,
    WEBHOOK_SERVICE,
};
use isp_api::preserve::Via;
use isp_plan::Key;

use super::{Scope, certificates};
use crate::doctor::cluster::{Deployment, Webhook};
use crate::doctor::finding::{Code, Finding, Severity, Subject};
use crate::doctor::kinds::Kind;

/// The suffix of the webhooks of Istio's injector.
const INJECTOR: &str = "sidecar-injector.istio.io";

pub(super) fn check(scope: &Scope<'_>, found: &mut Vec<Finding>) {
    operator(scope, found);
    webhook(scope, found);
    configurations(scope, found);
}

/// Whether an object has sidecars for the webhook to decide on.
fn wants_webhook(scope: &Scope<'_>) -> bool {
    scope.standing().any(|object| object.written.spec.sidecars.iter().any(|entry| entry.via == Via::Webhook))
}

pub(super) fn program<'a>(scope: &Scope<'a>, name: &str) -> Option<(&'a Key, &'a Deployment)> {
    scope
        .cluster
        .deployments
        .iter()
        .find(|(_, deployment)| deployment.labels.get(NAME_LABEL).is_some_and(|label| label == name))
}

/// Commands that show why a program does not run.
fn look_at(name: &str, key: Option<&Key>) -> [String; 2] {
    let namespace = key.map_or("sourcepreserve-system", |key| key.namespace.as_str());
    [
        format!("kubectl get pods -n {namespace} -l {NAME_LABEL}={name}   # why no pod is ready"),
        format!("kubectl logs -n {namespace} -l {NAME_LABEL}={name} --tail=20"),
    ]
}

fn operator(scope: &Scope<'_>, found: &mut Vec<Finding>) {
    // Without objects the operator has nothing to do.
    if scope.objects.is_empty() || !scope.cluster.knows(Kind::Deployment) {
        return;
    }
    let operator = program(scope, OPERATOR_FIELD_MANAGER);
    let line = match operator {
        Some((_, deployment)) if deployment.available > 0 => return,
        Some((_, deployment)) => format!("no replica of {} is available", deployment.wanted),
        None => "the operator is not installed".to_owned(),
    };
    let subject = match operator {
        Some((key, _)) => Subject::new("Deployment", key),
        None => Subject::new("Deployment", OPERATOR_FIELD_MANAGER),
    };
    let mut finding = Finding::new(Code::OperatorUnavailable, subject, line).because(
        "Nothing reacts to new nodes, lost endpoints and changed objects, and the deletion of an object does not finish.",
    );
    for step in look_at(OPERATOR_FIELD_MANAGER, operator.map(|(key, _)| key)) {
        finding = finding.do_this(step);
    }
    found.push(finding);
}

fn webhook(scope: &Scope<'_>, found: &mut Vec<Finding>) {
    if scope.objects.is_empty() || !scope.cluster.knows(Kind::Deployment) {
        return;
    }
    let (wanted, webhook) = (wants_webhook(scope), program(scope, WEBHOOK_SERVICE));
    let line = match webhook {
        Some((_, deployment)) if deployment.available > 0 => return,
        Some((_, deployment)) => format!("no replica of {} is available", deployment.wanted),
        None if wanted => "the webhook is not installed".to_owned(),
        None => return,
    };
    let subject = match webhook {
        Some((key, _)) => Subject::new("Deployment", key),
        None => Subject::new("Deployment", WEBHOOK_SERVICE),
    };
    let mut finding = Finding::new(Code::WebhookUnavailable, subject, line).because(
        "API servers go on without it: new pods that spec.sidecars selects get a sidecar that hides the source IP, and objects \
         that contradict others are admitted.",
    );
    if !wanted {
        finding = finding.graded(Severity::Warning);
    }
    for step in look_at(WEBHOOK_SERVICE, webhook.map(|(key, _)| key)) {
        finding = finding.do_this(step);
    }
    if let Some((key, _)) = webhook {
        let namespace = &key.namespace;
        let secret = "sourcepreserve-webhook-ca   # it must exist; the webhook cannot create it";
        finding = finding.do_this(format!("kubectl get secret -n {namespace} {secret}"));
    }
    found.push(finding);
}

fn is_ours(webhook: &Webhook) -> bool {
    webhook.service.as_ref().is_some_and(|service| service.name == WEBHOOK_SERVICE)
}

fn configurations(scope: &Scope<'_>, found: &mut Vec<Finding>) {
    // About one Service, the webhook matters only through the object of the Service.
    if scope.asked.is_some() && scope.objects.is_empty() {
        return;
    }
    let ours = |webhooks: &[Webhook]| webhooks.iter().any(is_ours);
    let objects: Option<(&String, &Vec<Webhook>)> = scope
        .cluster
        .validating
        .get_key_value(OBJECT_WEBHOOK_CONFIGURATION)
        .or_else(|| scope.cluster.validating.iter().find(|(_, webhooks)| ours(webhooks)));
    let published = objects.and_then(|(_, webhooks)| webhooks.first());
    if let (Some((name, _)), Some(webhook)) = (objects, published) {
        let subject = Subject::new("ValidatingWebhookConfiguration", name);
        found.extend(certificates::check(scope.now, &subject, &webhook.bundle, wants_webhook(scope)));
    }
    if objects.is_none() && wants_webhook(scope) && scope.cluster.knows(Kind::ValidatingWebhookConfiguration)
    {
        let subject = Subject::new("ValidatingWebhookConfiguration", OBJECT_WEBHOOK_CONFIGURATION);
        found
            .push(missing(subject, "the configuration does not exist, so the webhook cannot publish its CA"));
    }
    if !wants_webhook(scope) || !scope.cluster.knows(Kind::MutatingWebhookConfiguration) {
        return;
    }
    let pods: Vec<(&String, &Vec<Webhook>)> =
        scope.cluster.mutating.iter().filter(|(_, webhooks)| ours(webhooks)).collect();
    if pods.is_empty() {
        let subject = Subject::new("MutatingWebhookConfiguration", POD_WEBHOOK_CONFIGURATION);
        found.push(missing(subject, "API servers do not call the webhook for pods"));
    }
    for (name, webhooks) in pods {
        let subject = Subject::new("MutatingWebhookConfiguration", name);
        order(scope, name, &subject, found);
        let bundle =
            webhooks.iter().find(|webhook| is_ours(webhook)).map(|webhook| webhook.bundle.as_slice());
        bundles(scope, &subject, bundle.unwrap_or_default(), published, found);
    }
}

fn missing(subject: Subject, line: &str) -> Finding {
    Finding::new(Code::PodWebhookMissing, subject, line)
        .because(
            "The operator creates the configuration for pods from spec.sidecars, once the webhook has published its CA. Without it, \
             new pods get sidecars that hide the source IP.",
        )
        .do_this(
            "kubectl get validatingwebhookconfiguration sourcepreserve.io -o jsonpath='{.webhooks[0].clientConfig.caBundle}'   # empty: the CA is not published",
        )
        .do_this("kubectl isp status   # the operator's conditions")
}

fn bundles(
    scope: &Scope<'_>,
    subject: &Subject,
    bundle: &[u8],
    published: Option<&Webhook>,
    found: &mut Vec<Finding>,
) {
    let same = published.is_some_and(|published| published.bundle == bundle);
    if same && !bundle.is_empty() {
        // It is a copy, and the original has been checked.
        return;
    }
    let own: Vec<Finding> = certificates::check(scope.now, subject, bundle, true).into_iter().collect();
    let differs = published.is_some_and(|published| !published.bundle.is_empty()) && own.is_empty();
    found.extend(own);
    if differs {
        let line = format!(
            "its CA bundle differs from that of {OBJECT_WEBHOOK_CONFIGURATION}, which the webhook publishes"
        );
        found.push(
            Finding::new(Code::BundlesDiffer, subject.clone(), line)
                .because(
                    "API servers may not trust the webhook and go on without it. The operator copies the CA bundle: either it does not \
                     run, or another writer reverts the field.",
                )
                .do_this(format!("kubectl get pods -A -l {NAME_LABEL}={OPERATOR_FIELD_MANAGER}   # whether the operator runs"))
                .do_this(format!(
                    "kubectl get mutatingwebhookconfiguration {POD_WEBHOOK_CONFIGURATION} -o yaml --show-managed-fields   # the managers of the field"
                )),
        );
    }
}

/// API servers call configurations in the order of their names.
fn order(scope: &Scope<'_>, name: &str, subject: &Subject, found: &mut Vec<Finding>) {
    let is_injector = |webhooks: &[Webhook]| webhooks.iter().any(|webhook| webhook.name.ends_with(INJECTOR));
    let mut earlier = scope.cluster.mutating.iter().take_while(|(before, _)| before.as_str() < name);
    let Some((before, _)) = earlier.find(|(_, webhooks)| is_injector(webhooks)) else { return };
    found.push(
        Finding::new(
            Code::PodWebhookLate,
            subject.clone(),
            format!("API servers call it after Istio's injector {before}, because they go by name"),
        )
        .because(
            "The injector runs before the pod has the annotation. The pod is annotated with TPROXY, but its sidecar still hides the \
             source IP; with istio-cni the pod receives no traffic at all.",
        )
        .do_this(format!("give Istio's configuration a name that sorts after {POD_WEBHOOK_CONFIGURATION}, or remove {name} if it is a copy"))
        .do_this("then restart the pods that were created in the meantime"),
    );
}
