//! The authorities by which API servers trust the webhook.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::doctor::finding::{Code, Finding, Severity, Subject};

/// An authority is renewed long before this.
const SOON: SignedDuration = SignedDuration::from_hours(24);

/// What is wrong with a bundle. `needed`: whether pods depend on it.
pub(super) fn check(now: Timestamp, subject: &Subject, bundle: &[u8], needed: bool) -> Option<Finding> {
    let finding = about(now, subject, bundle)?;
    let graver = finding.severity == Severity::Error;
    Some(if graver && !needed { finding.graded(Severity::Warning) } else { finding })
}

const UNTRUSTED: &str = "API servers do not trust the webhook, and go on without it: new pods that spec.sidecars selects get a sidecar that \
                         hides the client, and objects that contradict others are let in.";

fn about(now: Timestamp, subject: &Subject, bundle: &[u8]) -> Option<Finding> {
    if bundle.iter().all(u8::is_ascii_whitespace) {
        return Some(mended(
            Finding::new(Code::BundleEmpty, subject.clone(), "its caBundle is empty")
                .because(format!("{UNTRUSTED} The webhook fills it in when it starts; something empties it, as a GitOps tool that declares the field does.")),
        ));
    }
    let Some(lifespans) = lifespans(bundle) else {
        let line = "its caBundle is no list of certificates";
        return Some(mended(Finding::new(Code::BundleNotValid, subject.clone(), line).because(UNTRUSTED)));
    };
    let valid = || lifespans.iter().filter(|lifespan| lifespan.begins <= now && now < lifespan.ends);
    if let Some(last) = valid().map(|lifespan| lifespan.ends).max() {
        return (last.duration_since(now) < SOON).then(|| {
            let line = format!("the last certificate of its caBundle ends at {}", minute(last));
            mended(Finding::new(Code::BundleEndsSoon, subject.clone(), line).because(
                "The webhook renews its authority months before; that this one is still there means that nobody renews it.",
            ))
        });
    }
    let begins = lifespans.iter().map(|lifespan| lifespan.begins).filter(|begins| *begins > now).min();
    let ended = lifespans.iter().map(|lifespan| lifespan.ends).filter(|ends| *ends <= now).max();
    let line = match (begins, ended) {
        (Some(begins), _) => format!("no certificate of its caBundle is valid before {}", minute(begins)),
        (None, Some(ended)) => format!("the last certificate of its caBundle ended at {}", minute(ended)),
        (None, None) => "no certificate of its caBundle is ever valid".to_owned(),
    };
    Some(mended(Finding::new(Code::BundleNotValid, subject.clone(), line).because(UNTRUSTED)))
}

fn mended(finding: Finding) -> Finding {
    finding
        .do_this("kubectl rollout restart -n sourcepreserve-system deployment/sourcepreserve-webhook   # it publishes its authority when it starts")
        .do_this("date -u   # whether the clock of this machine and of the nodes is right")
}

fn minute(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

struct Lifespan {
    begins: Timestamp,
    ends: Timestamp,
}

/// Of each certificate. None: there is no certificate, or one that cannot be read.
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
