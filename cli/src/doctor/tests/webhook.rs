//! The webhook's CA, judged by the bundle that it publishes.

use super::world::{World, lines};
use crate::doctor::finding::{Code, Severity};

#[test]
fn a_webhook_without_a_ca_is_a_warning_before_there_is_any_object() {
    let mut world = World::of("healthy");
    world.remove("IngressSourcePreserve", "");
    world.remove("IngressSourceNode", "");
    let published = world.the("ValidatingWebhookConfiguration", "sourcepreserve.io");
    let removed = published["webhooks"][0]["clientConfig"].as_object_mut().unwrap().remove("caBundle");
    assert!(removed.is_some());
    let found = world.examine(None);
    let empty: Vec<_> = found.iter().filter(|finding| finding.code == Code::BundleEmpty).collect();
    let [finding] = empty[..] else { panic!("{}", lines(&found)) };
    assert_eq!(finding.severity, Severity::Warning);
    let secret = "kubectl get secret -n sourcepreserve-system sourcepreserve-webhook-ca ";
    assert!(finding.remedy[0].starts_with(secret), "{:?}", finding.remedy);
}
