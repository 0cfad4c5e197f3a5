//! `trace` on dumps, without any cluster: what it prints, and what it ends with. The ways of
//! packets are tested in `isp-paths`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::path::Path;

use isp_lab::docs;
use isp_testkit::plugin::{Ended, dump, ended, on_dump};
use isp_testkit::schema::assert_output;
use serde_json::Value;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-isp");

const CLIENT: &str = "198.51.100.10";
const GATEWAY: &str = "svc/istio-system/istio-ingressgateway:80";

fn trace(dump: &Path, arguments: &[&str]) -> Ended {
    ended(on_dump(PROGRAM, "trace", dump, arguments).output().unwrap())
}

/// The results of all ways, as JSON.
fn outcomes(name: &str, from: &str, to: &str) -> (Option<i32>, Vec<Value>) {
    let told = trace(&dump(name), &["--from", from, "--to", to, "-o", "json"]);
    assert_eq!(told.stderr, "");
    let report: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_output("trace", &report);
    let paths = report["paths"].as_array().unwrap().iter();
    (told.code, paths.map(|path| path["outcome"].clone()).collect())
}

#[test]
fn a_trace_shows_each_hop_and_where_the_source_ip_is_lost() {
    let test = "a_trace_shows_each_hop_and_where_the_source_ip_is_lost";
    let [shown] = docs::commands("docs/kubectl-isp.md", test).unwrap();
    assert_eq!(shown.commands(), format!("kubectl isp trace --from {CLIENT} --to {GATEWAY} --via work-1\n"));
    let told = trace(&dump("untouched"), &["--from", CLIENT, "--to", GATEWAY, "--via", "work-1"]);
    assert_eq!((told.code, told.stderr.as_str()), (Some(2), ""), "{}", told.stdout);
    assert_eq!(told.stdout, shown.printed());
}

#[test]
fn with_the_object_the_clients_address_arrives_at_the_gateway() {
    let (code, found) = outcomes("healthy", CLIENT, GATEWAY);
    assert_eq!(code, Some(0), "{found:#?}");
    let [only] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!((only["result"].as_str(), only["node"].as_str()), (Some("delivered"), Some("edge-1")));
    assert_eq!(only["proxy"]["address"], CLIENT);
    assert_eq!((&only["gateway"], &only["kept"]), (&Value::Bool(true), &Value::Bool(true)));
}

#[test]
fn what_happens_before_the_first_node_is_not_known() {
    for (name, from, expected) in
        [("healthy", CLIENT, 1), ("healthy", "node/work-1", 0), ("untouched", CLIENT, 0)]
    {
        let told = trace(&dump(name), &["--from", from, "--to", "192.0.2.10:80"]);
        let gap = "\nnot known: whether NAT or a proxy before the first node replaces the source IP is not visible in the cluster;";
        assert_eq!(told.stdout.matches(gap).count(), expected, "{name}, {from}: {}", told.stdout);
    }
}

#[test]
fn before_the_object_every_node_replaces_it() {
    let (code, found) = outcomes("untouched", CLIENT, GATEWAY);
    assert_eq!(code, Some(2));
    assert_eq!(found.len(), 3, "one for each node: {found:#?}");
    assert!(found.iter().all(|one| one["kept"] == Value::Bool(false) && one["proxy"]["address"] != CLIENT));
}

#[test]
fn traffic_of_the_cluster_itself_goes_out_to_the_ingress_node_with_the_object() {
    let actors = |name: &str| -> Vec<String> {
        let arguments = ["--from", "pod/plain/echo", "--to", "192.0.2.10:80", "-o", "yaml"];
        let told = trace(&dump(name), &arguments);
        assert_eq!(told.code, Some(0), "{} {}", told.stdout, told.stderr);
        let report: Value = serde_yaml::from_str(&told.stdout).unwrap();
        assert_output("trace", &report);
        let hops = report["paths"][0]["hops"].as_array().unwrap().iter();
        hops.map(|hop| format!("{} {}", hop["place"].as_str().unwrap(), hop["actor"].as_str().unwrap()))
            .collect()
    };
    let without = actors("untouched");
    assert_eq!(without[0], "node work-1 kubeProxy");
    assert!(without[1].ends_with(" gateway"), "{without:?}");
    let with: Vec<String> = actors("healthy").into_iter().take(4).collect();
    assert_eq!(
        with,
        ["node work-1 routes", "node work-1 networkPlugin", "outside loadBalancer", "node edge-1 kubeProxy"]
    );
}

#[test]
fn what_the_dump_does_not_have_is_named() {
    for (arguments, part) in [
        (["--from", "pod/shop/none", "--to", GATEWAY], "there is no pod shop/none"),
        (["--from", "node/none", "--to", GATEWAY], "there is no node \"none\""),
        (["--from", CLIENT, "--to", "svc/shop/none"], "there is no Service shop/none"),
        (["--from", CLIENT, "--to", "svc/istio-system/istio-ingressgateway"], "has several tcp ports"),
        (["--from", CLIENT, "--to", "nonsense"], "expected svc/NAMESPACE/NAME[:PORT]"),
    ] {
        let told = trace(&dump("healthy"), &arguments);
        assert_eq!((told.code, told.stdout.as_str()), (Some(1), ""), "{arguments:?}");
        assert!(told.stderr.contains(part), "{}", told.stderr);
    }
}

#[test]
fn a_dump_without_pods_says_what_does_not_show() {
    let directory = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(dump("healthy")).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap() != "pods.yaml" {
            std::fs::copy(&path, directory.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    let told = trace(directory.path(), &["--from", CLIENT, "--to", GATEWAY]);
    assert_eq!(told.code, Some(0), "{}", told.stdout);
    let gap = "not known: pods were not read: the dump has none; sidecars and gateways do not show\n";
    assert!(told.stdout.contains(gap), "{}", told.stdout);
}
