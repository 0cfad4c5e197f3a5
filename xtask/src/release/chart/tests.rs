use std::fs;
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;

use super::super::tests::{image, release};
use super::*;

fn repository(path: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap()
}

/// The files of the package of the repository's chart.
fn packed(registry: &str) -> BTreeMap<String, String> {
    let mut files: BTreeMap<_, _> = ["Chart.yaml", "values.yaml", "README.md"]
        .into_iter()
        .map(|name| (name.to_owned(), repository(&format!("{DIRECTORY}/{name}"))))
        .collect();
    files.insert("templates/a.yaml".to_owned(), b"a: {{ .Values.a }}\n".to_vec());
    let definition = "crds/ingresssourcenodes.yaml";
    let package = package(Inputs {
        release: &release(registry),
        files,
        definitions: BTreeMap::from([(definition.to_owned(), repository(definition))]),
        images: &[image(registry, "operator")],
        changes: &[Change { kind: "added".to_owned(), description: "It: \"works\".".to_owned() }],
    });
    let package = package.unwrap();
    let mut archive = tar::Archive::new(GzDecoder::new(package.as_slice()));
    let files = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let mut content = String::new();
        entry.read_to_string(&mut content).unwrap();
        (entry.path().unwrap().display().to_string(), content)
    });
    files.collect()
}

#[test]
fn a_package_is_a_chart_for_helm_and_for_artifact_hub() {
    let files = packed("r.example/isp");
    let names = ["Chart.yaml", "README.md", "templates/a.yaml", "values.yaml"];
    assert_eq!(files.keys().collect::<Vec<_>>(), names.map(|name| format!("{NAME}/{name}")).each_ref());
    let chart: Value = serde_yaml::from_str(&files[&format!("{NAME}/Chart.yaml")]).unwrap();
    for (field, value) in [
        ("apiVersion", "v2"),
        ("name", NAME),
        ("version", "0.1.0"),
        ("appVersion", "0.1.0"),
        ("home", Home::IN_CARGO),
    ] {
        assert_eq!(chart[field], value, "{field}");
    }
    let list = |name: &str| -> Value {
        serde_yaml::from_str(chart["annotations"][format!("artifacthub.io/{name}")].as_str().unwrap())
            .unwrap()
    };
    assert_eq!(list("images")[0]["image"], "r.example/isp/operator:0.1.0");
    assert_eq!(list("images")[0]["platforms"][0], "linux/amd64");
    assert_eq!(list("changes")[0]["description"], "It: \"works\".");
    assert_eq!(list("crds")[0]["kind"], "IngressSourceNode");
    assert_eq!(list("crds")[0]["version"], "v1alpha1");
    assert!(!list("crds")[0]["description"].as_str().unwrap().is_empty());
    let values: Value = serde_yaml::from_str(&files[&format!("{NAME}/values.yaml")]).unwrap();
    assert_eq!(values["image"]["registry"], "r.example/isp");
}

#[test]
fn nothing_in_a_package_names_another_registry_or_links_to_a_file_that_is_not_there() {
    for (name, text) in packed("r.example/isp") {
        assert!(!text.contains("localhost/"), "{name}: {text}");
        assert!(!text.contains("](.."), "{name}: {text}");
    }
}

#[test]
fn relative_links_become_absolute_and_others_stay() {
    let page = "[a](../overlays/default), [b](../../docs/a.md#b), [c](#here), [d](https://d.example)";
    assert_eq!(
        absolute_links(page, &|path| format!("https://h.example/{path}")),
        "[a](https://h.example/manifests/overlays/default), [b](https://h.example/docs/a.md#b), [c](#here), [d](https://d.example)"
    );
}

#[test]
fn a_chart_of_another_version_is_refused() {
    let error =
        describe("{version: 0.2.0, appVersion: 0.1.0}", "0.1.0", &release("a.b").home, Mapping::new());
    assert_eq!(
        error.unwrap_err().to_string(),
        "manifests/chart/Chart.yaml has version \"0.2.0\", but Cargo.toml has version \"0.1.0\"; make them equal"
    );
}
