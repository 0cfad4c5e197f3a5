use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use super::super::changelog::{Change, Section};
use super::super::crates::Graph;
use super::super::tests::{image, release};
use super::*;

const PROGRAMS: [&str; 5] = ["operator", "pod-redirect", "probe", "proxy-agent", "webhook"];

fn repository(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap()
}

/// Small inputs; the manifests are the repository's.
fn inputs(registry: &str) -> Inputs {
    let crates: Vec<Value> = PROGRAMS
        .iter()
        .chain(&[krew::PROGRAM])
        .map(|name| {
            json!({
                "id": name, "name": format!("isp-{name}"), "version": "0.1.0", "license": "Apache-2.0",
                "targets": [{"name": name, "kind": ["bin"]}],
            })
        })
        .collect();
    let metadata = json!({"packages": crates, "resolve": {"nodes": []}}).to_string();
    let deployments =
        ["base", "webhook"].map(|part| repository(&format!("manifests/{part}/deployment.yaml")));
    // As the overlay does.
    let mut rendered = deployments.join("\n---\n");
    for program in PROGRAMS {
        rendered = rendered.replace(&format!("preserve/{program}\n"), &format!("preserve/{program}:0.1.0\n"));
    }
    let chart = ["Chart.yaml", "values.yaml", "README.md"];
    let changes = vec![Change { kind: "added".to_owned(), description: "One.".to_owned() }];
    Inputs {
        section: Section { unreleased: true, text: "### Added\n\n- One.".to_owned(), changes },
        platforms: vec![Platform::Amd64],
        images: PROGRAMS.map(|program| image(registry, program)).into(),
        archive: "0b".repeat(32),
        c_libraries: BTreeMap::from([(Platform::Amd64, "Debian GLIBC 2.41-12".to_owned())]),
        rustc: "rustc 1.95.0 (59807616e 2026-04-14)".to_owned(),
        plugins: BTreeMap::from([(Platform::Amd64, b"\x7fELF".to_vec())]),
        crates: BTreeMap::from([(Platform::Amd64, Graph::read(metadata.as_bytes(), "").unwrap())]),
        rendered: vec![rendered.clone(), rendered],
        chart: chart
            .map(|name| (name.to_owned(), repository(&format!("manifests/chart/{name}")).into_bytes()))
            .into(),
        definitions: BTreeMap::new(),
        completion: b"#!/bin/sh".to_vec(),
        license: b"Apache".to_vec(),
    }
}

fn compose(registry: &str) -> Files {
    files(&release(registry), &inputs(registry)).unwrap()
}

/// The text of a file, of an archive the text of the files in it.
fn texts(name: &str, content: &[u8]) -> String {
    if !name.ends_with("gz") {
        return String::from_utf8(content.to_vec()).unwrap();
    }
    let mut tar = Vec::new();
    GzDecoder::new(content).read_to_end(&mut tar).unwrap();
    String::from_utf8_lossy(&tar).into_owned()
}

#[test]
fn a_release_has_every_file_and_each_its_checksum() {
    let files = compose("r.example/isp");
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "NOTES.md",
            "SHA256SUMS",
            "ingress-source-preserve-0.1.0.tgz",
            "ingress-source-preserve-0.1.0.tgz.cdx.json",
            "install-cert-manager.yaml",
            "install-cert-manager.yaml.cdx.json",
            "install.yaml",
            "install.yaml.cdx.json",
            "isp.yaml",
            "kubectl-isp-0.1.0-linux-amd64.tar.gz",
            "kubectl-isp-0.1.0-linux-amd64.tar.gz.cdx.json",
            "operator-0.1.0-linux-amd64.cdx.json",
            "pod-redirect-0.1.0-linux-amd64.cdx.json",
            "probe-0.1.0-linux-amd64.cdx.json",
            "provenance.json",
            "proxy-agent-0.1.0-linux-amd64.cdx.json",
            "webhook-0.1.0-linux-amd64.cdx.json",
        ]
    );
    let sums = String::from_utf8(files[CHECKSUMS].clone()).unwrap();
    let summed: BTreeSet<&str> =
        sums.lines().filter_map(|line| line.split_once("  ")).map(|(_, name)| name).collect();
    let expected: BTreeSet<&str> =
        names.into_iter().filter(|name| *name != CHECKSUMS).chain([IMAGES]).collect();
    assert_eq!(summed, expected);
    let statement: Value = serde_json::from_slice(&files["provenance.json"]).unwrap();
    // It cannot describe itself and the checksums.
    assert_eq!(statement["subject"].as_array().unwrap().len(), expected.len() - 1);
}

#[test]
fn the_same_inputs_give_the_same_files() {
    assert_eq!(compose("r.example/isp"), compose("r.example/isp"));
}

#[test]
fn the_registry_reaches_every_file_that_names_an_image_and_no_other_name_remains() {
    let files = compose("r.example:5000/team/isp");
    let mut with_images = BTreeSet::new();
    for (name, content) in &files {
        let text = texts(name, content);
        for other in ["localhost/", "ghcr.io", "lab.local"] {
            assert!(!text.contains(other), "{name} has {other}");
        }
        for piece in text.split("r.example:5000/").skip(1) {
            assert!(piece.starts_with("team/isp"), "{name}: {piece:.40}");
            with_images.insert(name.as_str());
        }
    }
    let without = ["SHA256SUMS", "isp.yaml"];
    let of_the_plugin = |name: &&String| name.starts_with("kubectl-isp") || without.contains(&name.as_str());
    let expected: BTreeSet<&str> =
        files.keys().filter(|name| !of_the_plugin(name)).map(String::as_str).collect();
    assert_eq!(with_images, expected);
}

#[test]
fn an_image_that_is_too_large_is_named() {
    let mut inputs = inputs("r.example/isp");
    inputs.images[3].variants[0].unpacked = 15_600_000;
    assert_eq!(
        files(&release("r.example/isp"), &inputs).unwrap_err().to_string(),
        "r.example/isp/proxy-agent:0.1.0 has 15.6 MB for linux/amd64, but images have at most 15.0 MB"
    );
}
