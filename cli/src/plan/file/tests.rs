#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use kube::ResourceExt;

use super::*;

const HEAD: &str = "apiVersion: sourcepreserve.io/v1alpha1\nkind: IngressSourcePreserve\n";
const SPEC: &str = "spec:\n  ingressNodes: {selector: {matchLabels: {a: b}}}\n  services: [{namespace: web, name: frontend}]\n";

fn object(name: &str) -> String {
    format!("{HEAD}metadata: {{name: {name}}}\n{SPEC}")
}

fn problem(text: &str) -> String {
    parse("web.yaml", text).unwrap_err().to_string()
}

#[test]
fn documents_are_read_one_by_one_and_empty_ones_are_nothing() {
    let text = format!("# a comment\n---\n{}---\n{}---\n", object("web"), object("api"));
    let names: Vec<String> = parse("web.yaml", &text).unwrap().iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["web", "api"]);
}

#[test]
fn json_is_read_as_well() {
    let value: Value = serde_yaml::from_str(&object("web")).unwrap();
    assert_eq!(parse("-", &value.to_string()).unwrap()[0].name_any(), "web");
}

#[test]
fn the_samples_of_the_project_can_be_read() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../manifests/samples");
    let mut read_ones = 0;
    for sample in std::fs::read_dir(samples).unwrap() {
        read_ones += read(&sample.unwrap().path()).unwrap().len();
    }
    assert!(read_ones > 5, "{read_ones}");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let web = object("web");
    for (text, expected) in [
        ("", "web.yaml: there is no IngressSourcePreserve in it"),
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n",
            "web.yaml, document 1: this is Deployment web (apps/v1); plan accepts only IngressSourcePreserve of \
             sourcepreserve.io/v1alpha1: remove it from the file",
        ),
        (
            "a: b",
            "web.yaml, document 1: this is an object without a kind; plan accepts only IngressSourcePreserve of \
             sourcepreserve.io/v1alpha1: remove it from the file",
        ),
        (&format!("{HEAD}{SPEC}"), "web.yaml, document 1: metadata.name is missing"),
        (
            &format!("{web}---\n{web}"),
            "web.yaml, document 2 (web): the file already has an object of this name",
        ),
        (
            &format!("{web}  rollout: {{maxUnavailable: 0}}\n"),
            "web.yaml, document 1 (web): spec.rollout: maxUnavailable 0 is neither a number of nodes from 1 to \
             65535 nor a percentage from 1% to 100% at line 7 column 12",
        ),
        (
            &format!("{web}  rollot: {{paused: true}}\n"),
            "web.yaml, document 1 (web): spec.rollot: there is no such field; `kubectl explain isp.spec` lists them",
        ),
        (
            &web.replace("name: frontend", "nam: frontend"),
            "web.yaml, document 1 (web): spec.services[0].nam: there is no such field; `kubectl explain isp.spec` lists them",
        ),
        (
            &format!("{web}  elsewhere: Nowhere\n"),
            "web.yaml, document 1 (web): spec.elsewhere: unknown variant `Nowhere`, expected `ClusterOnly` or `Hidden` at line 7 \
             column 14",
        ),
    ] {
        assert_eq!(problem(text), expected);
    }
}

#[test]
fn empty_lists_say_nothing_and_are_no_unknown_fields() {
    let text = format!("{}  nodePools: []\n  sidecars: []\n  kubeProxy: null\n", object("web"));
    assert_eq!(parse("web.yaml", &text).unwrap().len(), 1);
}
