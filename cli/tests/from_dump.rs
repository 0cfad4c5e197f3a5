//! `doctor` and `plan` on dumps, without any cluster: what they print, and what they end with. What
//! `doctor` finds is tested beside the code.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::path::Path;

use isp_lab::docs;
use isp_testkit::plugin::{Ended, dump, ended, on_dump};
use serde_json::{Value, json};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-isp");

fn doctor(dump: &Path, arguments: &[&str]) -> Ended {
    run("doctor", dump, arguments)
}

fn run(name: &str, dump: &Path, arguments: &[&str]) -> Ended {
    ended(on_dump(PROGRAM, name, dump, arguments).output().unwrap())
}

/// The healthy dump with a change of its text.
fn changed(file: &str, from: &str, to: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let mut found = false;
    for entry in std::fs::read_dir(dump("healthy")).unwrap() {
        let path = entry.unwrap().path();
        let mut text = std::fs::read_to_string(&path).unwrap();
        if path.file_name().unwrap() == file {
            found = text.contains(from);
            text = text.replace(from, to);
        }
        std::fs::write(directory.path().join(path.file_name().unwrap()), text).unwrap();
    }
    assert!(found, "{from:?} is not in {file}");
    directory
}

const GATEWAY: &str = "istio-system/istio-ingressgateway";

/// A dump without one of its files.
fn without(name: &str, file: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(dump(name)).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap() != file {
            std::fs::copy(&path, directory.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    directory
}

#[test]
fn where_nothing_is_wrong_the_services_that_lose_the_address_are_counted() {
    let without_policies = without("untouched", "istio.yaml");
    for (path, counted) in [
        (dump("healthy"), "1 of 2 exposed Services loses the client's source IP: plain/echo\n"),
        (
            without_policies.path().to_owned(),
            "2 of 2 exposed Services lose the client's source IP: istio-system/istio-ingressgateway, plain/echo\n",
        ),
    ] {
        let told = doctor(&path, &[]);
        assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""), "{}", told.stdout);
        assert!(told.stdout.contains(&format!("note ISP315  Cluster: {counted}")), "{}", told.stdout);
    }
}

#[test]
fn where_there_is_nothing_to_say_that_is_all() {
    let kept = |text: String| text.replace("externalTrafficPolicy: Cluster", "externalTrafficPolicy: Local");
    let directory = without("healthy", "core.yaml");
    let core = std::fs::read_to_string(dump("healthy").join("core.yaml")).unwrap();
    std::fs::write(directory.path().join("core.yaml"), kept(core)).unwrap();
    let told = doctor(directory.path(), &[]);
    assert_eq!(told.code, Some(0));
    assert_eq!(
        told.stdout,
        "\
ok  the operator runs: 2 of 2 replicas are available
ok  the webhook runs: 2 of 2 replicas are available
ok  API servers trust the webhook: its CA bundle is valid
ok  1 IngressSourcePreserve is Ready
ok  2 Services are exposed; 2 keep the source IP
ok  3 nodes are Ready
ok  2 agents have acknowledged the current view
ok  the settings of kube-proxy (DaemonSet kube-system/kube-proxy) keep the source IP
ok  the sidecars that spec.sidecars selects hand the source IP on
ok  2 policies compare addresses; 2 see the client's

no faults found; examined 1 IngressSourcePreserve, 7 Services (2 exposed), 3 nodes, 5 proxy pods
"
    );
    let json: Value = serde_json::from_str(&doctor(directory.path(), &["-o", "json"]).stdout).unwrap();
    let yaml: Value = serde_yaml::from_str(&doctor(directory.path(), &["-o", "yaml"]).stdout).unwrap();
    assert_eq!((&json["findings"], &yaml["findings"]), (&json!([]), &json!([])));
    let passed = json["passed"].as_array().unwrap();
    assert_eq!(passed.len(), 10);
    assert_eq!(
        passed[4],
        json!({"check": "services", "line": "2 Services are exposed; 2 keep the source IP"})
    );
}

#[test]
fn a_deny_that_fails_open_on_a_cluster_that_nobody_has_touched_is_an_error() {
    let test = "a_deny_that_fails_open_on_a_cluster_that_nobody_has_touched_is_an_error";
    let [shown] = docs::commands("docs/doctor.md", test).unwrap();
    assert_eq!(shown.commands(), "kubectl isp doctor\n");
    // The page shows the policy that fails open, without the one of the lab that fails closed.
    let directory = without("untouched", "istio.yaml");
    let policies = std::fs::read_to_string(dump("untouched").join("istio.yaml")).unwrap();
    let policies = policies.replace(
        "          ipBlocks:\n          - 198.51.100.0/24\n          - 203.0.113.0/24\n",
        "          namespaces:\n          - shop\n",
    );
    std::fs::write(directory.path().join("istio.yaml"), policies).unwrap();
    let told = doctor(directory.path(), &[]);
    assert_eq!((told.code, told.stderr.as_str()), (Some(2), ""));
    assert_eq!(told.stdout, shown.printed());
    assert!(
        told.stdout.starts_with("error ISP701  AuthorizationPolicy shop/clients: DENY fails open: "),
        "{}",
        told.stdout
    );
    for part in [
        "\n  path       Service istio-system/istio-ingressgateway, ",
        "(SNAT)\n",
        "\n             kubectl apply -f istio-ingressgateway.yaml",
    ] {
        assert!(told.stdout.contains(part), "{part:?}: {}", told.stdout);
    }
}

#[test]
fn a_dump_without_pods_does_not_pass_for_one_without_faults() {
    let told = doctor(without("untouched", "pods.yaml").path(), &[]);
    assert_eq!(told.code, Some(2), "{}", told.stdout);
    assert!(
        told.stdout.contains("warning ISP901  Kind Pod: pods were not examined: the dump has none"),
        "{}",
        told.stdout
    );
}

#[test]
fn a_fault_is_told_with_its_reason_and_the_commands_that_help() {
    let [shown] =
        docs::commands("docs/doctor.md", "a_fault_is_told_with_its_reason_and_the_commands_that_help")
            .unwrap();
    assert_eq!(shown.commands(), "kubectl isp doctor\n");
    let broken = changed("core.yaml", "externalTrafficPolicy: Local", "externalTrafficPolicy: Cluster");
    // The page shows it on a cluster; of a dump of that one it says the same.
    let told = doctor(broken.path(), &[]);
    assert_eq!((told.code, told.stderr.as_str()), (Some(2), ""));
    assert_eq!(told.stdout, shown.printed());
    assert!(told.stdout.starts_with("error ISP305  Service istio-system/istio-ingressgateway: "));
    assert!(!told.stdout.contains('\u{1b}'), "no colours without a terminal");
}

#[test]
fn findings_for_programs_have_the_same_fields_in_json_and_yaml() {
    let broken = changed("core.yaml", "externalTrafficPolicy: Local", "externalTrafficPolicy: Cluster");
    let told = doctor(broken.path(), &["-o", "json"]);
    assert_eq!(told.code, Some(2));
    let json: Value = serde_json::from_str(&told.stdout).unwrap();
    let yaml: Value = serde_yaml::from_str(&doctor(broken.path(), &["-o", "yaml"]).stdout).unwrap();
    assert_eq!(json, yaml);
    isp_testkit::schema::assert_output("doctor", &json);
    let top: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(top, ["findings", "passed"]);
    let first = &json["findings"][0];
    let fields: Vec<&str> = first.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields, ["code", "line", "reason", "remedy", "severity", "subject"]);
    assert_eq!(first["code"], "ISP305");
    assert_eq!(first["severity"], "error");
    assert_eq!(first["subject"], format!("Service {GATEWAY}"));
    assert_eq!(first["remedy"][0], "kubectl isp status shop");
}

#[test]
fn one_service_can_be_asked_about() {
    assert_eq!(doctor(&dump("healthy"), &["--service", GATEWAY]).code, Some(0));
    let told = doctor(&dump("untouched"), &["--service", GATEWAY]);
    assert_eq!(told.code, Some(2), "{}", told.stdout);
    assert!(
        told.stdout.contains("warning ISP307  Service istio-system/istio-ingressgateway: "),
        "{}",
        told.stdout
    );
    let told = doctor(&dump("healthy"), &["--service", "web/absent"]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(1), ""));
    assert_eq!(told.stderr, "error: there is no Service web/absent; `kubectl get services -A` lists them\n");
    let told = doctor(&dump("healthy"), &["--service", "frontend"]);
    assert_eq!(told.code, Some(1));
    assert!(told.stderr.contains("web/frontend"), "{}", told.stderr);
}

#[test]
fn what_cannot_be_read_is_named_with_file_and_line() {
    let broken = changed("core.yaml", "  kind: Node\n", "  kind: [Node\n");
    let told = doctor(broken.path(), &[]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(1), ""));
    assert!(told.stderr.contains("core.yaml: ") && told.stderr.contains(" line "), "{}", told.stderr);
    let empty = tempfile::tempdir().unwrap();
    let told = doctor(empty.path(), &[]);
    assert_eq!(told.code, Some(1));
    assert!(told.stderr.contains("there is no object in it"), "{}", told.stderr);
    assert_eq!(doctor(Path::new("/nowhere/dump"), &[]).code, Some(1));
}

#[test]
fn the_dumps_are_small_and_hold_no_secrets() {
    let mut bytes = 0;
    for path in ["healthy", "untouched"].into_iter().flat_map(|name| std::fs::read_dir(dump(name)).unwrap()) {
        let text = std::fs::read_to_string(path.unwrap().path()).unwrap();
        bytes += text.len();
        for word in ["kind: Secret\n", "PRIVATE KEY", "token: "] {
            assert!(!text.contains(word), "{word:?}");
        }
    }
    assert!(bytes < 300_000, "{bytes}");
}

/// An object for the gateway of the dumps.
fn object(directory: &tempfile::TempDir) -> String {
    let path = directory.path().join("web.txt");
    let text = "apiVersion: sourcepreserve.io/v1alpha1\nkind: IngressSourcePreserve\nmetadata: {name: web}\n\
                spec: {ingressNodes: {selector: {matchLabels: {node-role.kubernetes.io/ingress: ''}}}, \
                services: [{namespace: istio-system, name: istio-ingressgateway}]}\n";
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_plan_of_a_dump_tells_by_its_exit_code_whether_something_would_change() {
    let directory = tempfile::tempdir().unwrap();
    let file = object(&directory);
    for (arguments, code) in [(&[][..], 0), (&["--exit-code"], 3)] {
        let told = run("plan", &dump("untouched"), &[&["-f", &file], arguments].concat());
        assert_eq!((told.code, told.stderr.as_str()), (Some(code), ""), "{}", told.stdout);
        assert!(
            told.stdout.starts_with("web would be created\nnote: the dump was taken without "),
            "{}",
            told.stdout
        );
        assert!(told.stdout.contains("\nweb becomes Ready: "), "{}", told.stdout);
    }
    let text = std::fs::read_to_string(&file).unwrap();
    // Already there, and held, but not reconciled: the operator would do the same without the file.
    let (there, file_again) = (without("untouched", ""), object(&directory));
    std::fs::write(
        there.path().join("web.yaml"),
        text.replace("{name: web}", "{name: web, uid: a, generation: 1}"),
    )
    .unwrap();
    let told = run("plan", there.path(), &["-f", &file_again, "--exit-code", "-o", "json"]);
    assert_eq!(told.code, Some(0), "{}{}", told.stdout, told.stderr);
    let json: Value = serde_json::from_str(&told.stdout).unwrap();
    isp_testkit::schema::assert_output("plan", &json);
    assert_eq!(json["objects"][0]["change"], "unchanged");
    // An object that would not become Ready is worse than a change.
    std::fs::write(&file, text.replace("role.kubernetes.io/ingress", "role.kubernetes.io/nowhere")).unwrap();
    let told = run("plan", &dump("untouched"), &["-f", &file, "--exit-code"]);
    assert_eq!(told.code, Some(2), "{}", told.stdout);
}

#[test]
fn a_dump_that_a_plan_cannot_use_is_refused_with_the_command_that_completes_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = object(&directory);
    let told = run("plan", &dump("healthy"), &["-f", &file]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(1), ""));
    assert!(
        told.stderr.contains("lacks what the plan depends on; add it with `kubectl get "),
        "{}",
        told.stderr
    );
    assert!(told.stderr.contains(" -A --show-managed-fields -o yaml > "), "{}", told.stderr);
    let empty = tempfile::tempdir().unwrap();
    let told = run("plan", empty.path(), &["-f", &file]);
    assert!(told.stderr.contains("`kubectl isp plan --help` shows how to take a dump"), "{}", told.stderr);
}
