use super::super::tests::{image, release};
use super::*;

const RENDERED: &str = "\
kind: CustomResourceDefinition
properties: {image: {type: string}}
---
kind: Deployment
containers:
- image: localhost/ingress-source-preserve/operator:0.1.0
  env:
  - {name: AGENT_IMAGE, value: localhost/ingress-source-preserve/proxy-agent:0.1.0}
  - {name: POD_NAME, valueFrom: {}}
";

#[test]
fn an_overlay_names_the_images_of_the_release() {
    let text = file(&release("r.example/isp"), "install.yaml", "default", RENDERED);
    assert!(text.starts_with("# ingress-source-preserve 0.1.0, from manifests/overlays/default. Its images"));
    let (operator, agent) = (image("r.example/isp", "operator"), image("r.example/isp", "proxy-agent"));
    assert_eq!(named(&text).unwrap(), [operator.reference.clone(), agent.reference.clone()]);
    check("install.yaml", &text, &[operator.clone(), agent.clone()]).unwrap();
    assert!(!is_left_over(&release("r.example/isp").registry, &text));
    assert!(is_left_over(&release("r.example/isp").registry, RENDERED));
    assert!(!is_left_over(&release(Registry::IN_MANIFESTS).registry, RENDERED));

    let unknown = check("install.yaml", RENDERED, &[operator.clone(), agent.clone()]).unwrap_err();
    assert!(
        unknown.to_string().starts_with(
            "install.yaml names the image localhost/ingress-source-preserve/operator:0.1.0, which is not part"
        ),
        "{unknown}"
    );
    let webhook = image("r.example/isp", "webhook");
    let missing = check("install.yaml", &text, &[operator, agent, webhook]).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "install.yaml names no image r.example/isp/webhook:0.1.0; add it to manifests/overlays"
    );
}

#[test]
fn the_lab_packs_images_under_the_name_that_the_manifests_have() {
    let lab = include_str!("../../../../lab/src/release.rs");
    assert!(lab.contains(&format!("pub const REGISTRY: &str = {:?};", Registry::IN_MANIFESTS)));
}

/// `cargo xtask release` replaces that one name. Another one would stay.
#[test]
fn the_manifests_of_the_repository_name_no_image_of_another_registry() {
    let own = |path: &str, text: &str| {
        for image in named(text).unwrap() {
            assert!(image.starts_with(&format!("{}/", Registry::IN_MANIFESTS)), "{path}: {image}");
        }
    };
    for (path, text) in [
        ("base", include_str!("../../../../manifests/base/deployment.yaml")),
        ("webhook", include_str!("../../../../manifests/webhook/deployment.yaml")),
        ("cleanup", include_str!("../../../../manifests/cleanup/job.yaml")),
    ] {
        assert!(!named(text).unwrap().is_empty());
        own(path, text);
    }
    let values: Value =
        serde_yaml::from_str(include_str!("../../../../manifests/chart/values.yaml")).unwrap();
    assert_eq!(values["image"]["registry"], Registry::IN_MANIFESTS);
}
