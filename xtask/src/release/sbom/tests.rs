use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::tests::{image, release};
use super::*;

fn linked() -> Linked {
    let one = |name: &str, checksum: Option<&str>| Crate {
        name: name.to_owned(),
        version: "1.0.0".to_owned(),
        license: Some("MIT".to_owned()),
        checksum: checksum.map(str::to_owned),
    };
    Linked {
        crates: vec![one("isp-operator", None), one("json", Some("0a0b"))],
        root: 0,
        depends_on: vec![vec![1], vec![]],
    }
}

/// Parses an SBOM and checks what the format requires of every one.
fn required(bom: Bom) -> Value {
    let text = bom.render().unwrap();
    let bom: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&bom["bomFormat"], &bom["specVersion"], &bom["version"]),
        (&json!("CycloneDX"), &json!("1.6"), &json!(1))
    );
    let components = bom["components"].as_array().unwrap().iter().chain([&bom["metadata"]["component"]]);
    let mut refs = BTreeSet::new();
    for component in components {
        for field in ["type", "name", "version", "bom-ref"] {
            assert!(component[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {component}");
        }
        assert!(refs.insert(component["bom-ref"].as_str().unwrap()), "{component} is there twice");
    }
    for dependency in bom["dependencies"].as_array().unwrap() {
        let depends_on = dependency["dependsOn"].as_array().unwrap().iter();
        for name in depends_on.chain([&dependency["ref"]]) {
            assert!(refs.contains(name.as_str().unwrap()), "{name} is not a component");
        }
    }
    // The pattern of the schema.
    let serial = bom["serialNumber"].as_str().unwrap().strip_prefix("urn:uuid:").unwrap();
    let lengths: Vec<usize> = serial.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12], "{serial}");
    assert!(serial.chars().all(|letter| letter == '-' || letter.is_ascii_hexdigit()), "{serial}");
    bom
}

#[test]
fn the_sbom_of_an_image_has_its_crates_and_its_c_library() {
    let release = release("r.example/isp");
    let make = || {
        let subject = Component::image(&release, &image("r.example/isp", "operator"));
        of_program(
            &release,
            subject,
            &linked(),
            vec![Component::library("glibc", "2.36", "LGPL-2.1-or-later")],
        )
    };
    let bom = required(make());
    assert_eq!(bom["metadata"]["component"]["type"], "container");
    let digest = "0a".repeat(32);
    let purl = format!("pkg:oci/operator@sha256%3A{digest}?repository_url=r.example/isp/operator&tag=0.1.0");
    assert_eq!(bom["metadata"]["component"]["purl"], purl);
    assert_eq!(bom["components"][1]["purl"], "pkg:cargo/json@1.0.0");
    assert_eq!(bom["components"][1]["hashes"], json!([{"alg": "SHA-256", "content": "0a0b"}]));
    assert_eq!(bom["components"][0].get("purl"), None);
    assert_eq!(bom["components"][2]["name"], "glibc");
    assert_eq!(bom["dependencies"][0]["dependsOn"], json!(["isp-operator@1.0.0", "glibc@2.36"]));
    assert_eq!(make().render().unwrap(), make().render().unwrap());
}

#[test]
fn the_sbom_of_manifests_has_their_images() {
    let release = release("r.example/isp");
    let images = [image("r.example/isp", "operator"), image("r.example/isp", "webhook")];
    let bom = required(of_manifests(&release, Component::file(&release, "install.yaml", b"a: b\n"), &images));
    assert_eq!(bom["metadata"]["component"]["hashes"][0]["content"], sha256(b"a: b\n"));
    assert_eq!(
        bom["dependencies"][0]["dependsOn"],
        json!(["r.example/isp/operator:0.1.0", "r.example/isp/webhook:0.1.0"])
    );
}
