//! The CA bundles by which API servers trust the webhook.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::doctor::finding::{Code, Finding, Severity, Subject};

/// The webhook renews its CA long before this.
const SOON: SignedDuration = SignedDuration::from_hours(24);

/// The fault of a CA bundle, if any. `needed`: whether pods depend on the webhook.
pub(super) fn check(now: Timestamp, subject: &Subject, bundle: &[u8], needed: bool) -> Option<Finding> {
    let finding = about(now, subject, bundle)?;
    let graver = finding.severity == Severity::Error;
    Some(if graver && !needed { finding.graded(Severity::Warning) } else { finding })
}

const UNTRUSTED: &str = "API servers do not trust the webhook and go on without it: new pods that spec.sidecars selects get a sidecar that \
                         hides the source IP, and objects that contradict others are admitted.";

/// The Secret in which the webhook keeps its CA. The webhook cannot create it.
const SECRET: &str = "sourcepreserve-webhook-ca";

fn about(now: Timestamp, subject: &Subject, bundle: &[u8]) -> Option<Finding> {
    if bundle.iter().all(u8::is_ascii_whitespace) {
        let reason = format!(
            "{UNTRUSTED} The webhook publishes its CA from the Secret {SECRET}. Either the Secret is missing, so that no replica \
             becomes ready, or another writer empties the field, such as a GitOps tool that declares it."
        );
        let finding = Finding::new(Code::BundleEmpty, subject.clone(), "its CA bundle (caBundle) is empty")
            .because(reason)
            .do_this(format!(
                "kubectl get secret -n sourcepreserve-system {SECRET}   # if it does not exist, apply the manifests again"
            ));
        return Some(restart(finding));
    }
    let Some(lifespans) = lifespans(bundle) else {
        let line = "its CA bundle (caBundle) contains no certificates";
        return Some(remedied(Finding::new(Code::BundleNotValid, subject.clone(), line).because(UNTRUSTED)));
    };
    let valid = || lifespans.iter().filter(|lifespan| lifespan.begins <= now && now < lifespan.ends);
    if let Some(last) = valid().map(|lifespan| lifespan.ends).max() {
        return (last.duration_since(now) < SOON).then(|| {
            let line = format!("the last certificate of its CA bundle expires at {}", minute(last));
            remedied(
                Finding::new(Code::BundleEndsSoon, subject.clone(), line)
                    .because("The webhook renews its CA months before it expires. No replica has done so."),
            )
        });
    }
    let begins = lifespans.iter().map(|lifespan| lifespan.begins).filter(|begins| *begins > now).min();
    let ended = lifespans.iter().map(|lifespan| lifespan.ends).filter(|ends| *ends <= now).max();
    let line = match (begins, ended) {
        (Some(begins), _) => format!("no certificate of its CA bundle is valid before {}", minute(begins)),
        (None, Some(ended)) => format!("the last certificate of its CA bundle expired at {}", minute(ended)),
        (None, None) => "no certificate of its CA bundle is ever valid".to_owned(),
    };
    Some(remedied(Finding::new(Code::BundleNotValid, subject.clone(), line).because(UNTRUSTED)))
}

fn remedied(finding: Finding) -> Finding {
    restart(finding).do_this("date -u   # whether the clocks of this machine and of the nodes are right")
}

fn restart(finding: Finding) -> Finding {
    finding
        .do_this("kubectl rollout restart -n sourcepreserve-system deployment/sourcepreserve-webhook   # it publishes its CA when it starts")
}

fn minute(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

struct Lifespan {
    begins: Timestamp,
    ends: Timestamp,
}

/// The validity of each certificate. None: there is none, or one cannot be read.
fn lifespans(bundle: &[u8]) -> Option<Vec<Lifespan>> {
    let parts = pem::parse_many(bundle).ok()?;
    let lifespan = |part: &pem::Pem| {
        let (_, certificate) = x509_parser::parse_x509_certificate(part.contents()).ok()?;
        let validity = certificate.validity();
        Some(Lifespan {
            begins: Timestamp::from_second(validity.not_before.timestamp()).ok()?,
            ends: Timestamp::from_second(validity.not_after.timestamp()).ok()?,
        })
    };
    let found: Option<Vec<Lifespan>> = parts.iter().map(lifespan).collect();
    found.filter(|found| !found.is_empty())
}
