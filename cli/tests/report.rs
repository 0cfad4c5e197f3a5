//! `report` on dumps, without any cluster: what the page says about each path, and what is refused.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use isp_testkit::browser::report::data;
use isp_testkit::plugin::dump;
use serde_json::Value;

fn report(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kubectl-isp")).arg("report").args(arguments).output().unwrap()
}

fn page(dump: &Path, arguments: &[&str]) -> String {
    let mut all = vec!["--from-dir", dump.to_str().unwrap(), "-o", "-"];
    all.extend(arguments);
    let Output { status, stdout, stderr } = report(&all);
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// The outcomes of the paths from a kind of source to a kind of address of Istio's gateway.
fn outcomes(data: &Value, from: &str, to: &str) -> BTreeSet<String> {
    let paths = data["paths"].as_array().unwrap().iter();
    let wanted = paths.filter(|path| {
        path["service"] == "istio-system/istio-ingressgateway"
            && path["from"]["kind"] == from
            && path["to"]["kind"] == to
    });
    wanted.map(|path| path["journeys"][0]["outcome"].as_str().unwrap().to_owned()).collect()
}

fn set(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn each_path_of_a_dump_ends_as_the_demo_shows_it() {
    for (name, from, to, expected) in [
        ("untouched", "outside", "external", &["lost"][..]),
        ("untouched", "outside", "node-port", &["lost"]),
        ("untouched", "pod", "cluster-ip", &["preserved"]),
        ("healthy", "outside", "external", &["preserved"]),
        ("healthy", "outside", "node-port", &["dropped", "preserved"]),
        ("healthy", "pod", "cluster-ip", &["preserved"]),
        ("healthy", "pod", "external", &["preserved"]),
        ("healthy", "host", "external", &["preserved"]),
    ] {
        let found = outcomes(&data(&page(&dump(name), &[])), from, to);
        assert_eq!(found, set(expected), "{name}: {from} to {to}");
    }
}

#[test]
fn non_ingress_nodes_that_behave_alike_are_one_path() {
    let data = data(&page(&dump("healthy"), &["--service", "istio-system/istio-ingressgateway"]));
    let labels: BTreeSet<&str> = data["paths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|path| path["from"]["label"].as_str().unwrap())
        .collect();
    assert!(
        labels.contains("Pod on edge-1") && labels.contains("Pod on 2 nodes of pool default"),
        "{labels:?}"
    );
    assert_eq!(data["services"], serde_json::json!(["istio-system/istio-ingressgateway"]));
}

#[test]
fn a_pod_that_connects_is_not_the_one_behind_the_service_if_its_node_has_another() {
    let data = data(&page(&dump("healthy"), &["--service", "plain/echo"]));
    let paths = data["paths"].as_array().unwrap().iter();
    let mut own = paths.filter(|path| path["from"]["kind"] == "pod" && path["to"]["kind"] == "cluster-ip");
    assert!(own.all(|path| path["journeys"][0]["arrives"] == path["from"]["address"]), "{data:#}");
}

#[test]
fn the_page_tells_the_policies_the_findings_and_the_gaps() {
    let page = page(&dump("untouched"), &[]);
    assert!(!page.contains("before the first node"), "no client keeps its address");
    for part in ["Fails open", "Fails closed", "ISP701", "ISP702", "A dump has no Events"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_page_that_says_preserved_says_what_it_cannot_see() {
    let page = page(&dump("healthy"), &[]);
    assert!(page.contains("Whether NAT or a proxy before the first node replaces the source IP"));
}

#[test]
fn the_page_is_written_to_the_file_and_its_name_printed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.html");
    let dump = dump("healthy");
    let told = report(&["--from-dir", dump.to_str().unwrap(), "-o", file.to_str().unwrap()]);
    assert_eq!(String::from_utf8(told.stdout).unwrap(), format!("{}\n", file.display()));
    assert!(std::fs::read_to_string(file).unwrap().starts_with("<!doctype html>"));
}

#[test]
fn mistakes_are_told_with_the_way_out() {
    let dump = dump("healthy");
    let dump = dump.to_str().unwrap();
    for (arguments, words) in [
        (&["--from-dir", "/nowhere/dump"][..], "/nowhere/dump"),
        (&["--from-dir", dump, "--service", "web/absent"], "`kubectl get services -A` lists them"),
        (&["--from-dir", dump, "-o", "/nowhere/report.html"], "choose another file"),
        (&["--from-dir", dump, "-f", "web.yaml"], "cannot be used with"),
        (&["--from-dir", dump, "serve", "--listen", "0.0.0.0:0"], "--insecure-listen"),
        (&["--from-dir", dump, "serve", "--listen", "8090"], "127.0.0.1:8090"),
        (&["-f", "/nowhere/web.yaml"], "/nowhere/web.yaml"),
    ] {
        let told = report(arguments);
        let said = String::from_utf8_lossy(&told.stderr).into_owned();
        assert_eq!(told.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}
