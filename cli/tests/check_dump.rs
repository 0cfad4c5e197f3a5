//! `check` on dumps, without any cluster: what it prints, what it writes, and what it ends with.
//! What it finds is tested beside the code. Also SARIF, for `check` and `doctor`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::path::Path;

use isp_lab::docs;
use isp_testkit::plugin::{Ended, dump, ended, on_dump};
use isp_testkit::schema::assert_output;
use serde_json::Value;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-isp");

const GATEWAY: &str = "istio-system/istio-ingressgateway";

fn run(name: &str, dump: &Path, arguments: &[&str], locale: &str) -> Ended {
    ended(on_dump(PROGRAM, name, dump, arguments).env("LC_ALL", locale).output().unwrap())
}

fn check(dump: &Path, arguments: &[&str]) -> Ended {
    run("check", dump, arguments, "C.UTF-8")
}

/// A dump with a file of its own, and with a change of its text.
fn changed(name: &str, version: &str, change: impl Fn(&str) -> String) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(dump(name)).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(directory.path().join(path.file_name().unwrap()), change(&text)).unwrap();
    }
    // As `kubectl version -o yaml` prints it.
    let version = format!("clientVersion:\n  gitVersion: v1.36.0\nserverVersion:\n  gitVersion: {version}\n");
    std::fs::write(directory.path().join("version.yaml"), version).unwrap();
    directory
}

fn sound() -> tempfile::TempDir {
    changed("healthy", "v1.37.0", |text| {
        text.replace("externalTrafficPolicy: Cluster", "externalTrafficPolicy: Local")
    })
}

#[test]
fn a_cluster_without_the_project_is_checked_from_its_dump() {
    let test = "a_cluster_without_the_project_is_checked_from_its_dump";
    let [shown] = docs::commands("docs/kubectl-isp.md", test).unwrap();
    assert_eq!(shown.commands(), "kubectl isp check\n");
    let told = check(changed("untouched", "v1.37.0", str::to_owned).path(), &[]);
    assert_eq!((told.code, told.stderr.as_str()), (Some(2), ""));
    assert_eq!(told.stdout, shown.printed());
}

#[test]
fn a_cluster_that_preserves_everything_says_so_and_points_to_status_and_doctor() {
    let told = check(sound().path(), &[]);
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""), "{}", told.stdout);
    for part in [
        "\u{2714} Service istio-system/istio-ingressgateway keeps the source IP on edge-1, preserved by IngressSourcePreserve shop\n",
        "\u{2714} the project is installed; 1 of 1 IngressSourcePreserves are Ready: shop\n    kubectl isp status ",
        "\u{2714} 2 policies compare addresses; 2 see the client's\n",
        "\nno problem: all 2 exposed Services keep the source IP\n",
    ] {
        assert!(told.stdout.contains(part), "{part:?}: {}", told.stdout);
    }
    assert!(!told.stdout.contains('\u{2716}') && !told.stdout.contains("proposed object"), "{}", told.stdout);
    let plain = run("check", sound().path(), &[], "C");
    assert!(plain.stdout.is_ascii() && plain.stdout.contains("\nok Service "), "{}", plain.stdout);
}

#[test]
fn one_service_decides_the_exit_code_if_it_is_asked_about() {
    assert_eq!(check(&dump("healthy"), &[]).code, Some(2), "plain/echo loses the source IP");
    assert_eq!(check(&dump("healthy"), &["--service", GATEWAY]).code, Some(0));
    assert_eq!(check(&dump("untouched"), &["--service", GATEWAY]).code, Some(2));
    let told = check(&dump("healthy"), &["--service", "web/absent"]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(1), ""));
    assert_eq!(told.stderr, "error: there is no Service web/absent; `kubectl get services -A` lists them\n");
}

#[test]
fn output_for_scripts_is_as_its_schema_says() {
    for dump in [dump("untouched"), dump("healthy"), sound().path().to_owned()] {
        let told = check(&dump, &["-o", "json"]);
        assert_output("check", &serde_json::from_str(&told.stdout).unwrap());
    }
}

#[test]
fn json_and_yaml_have_the_same_fields() {
    let json: Value = serde_json::from_str(&check(&dump("untouched"), &["-o", "json"]).stdout).unwrap();
    let yaml: Value = serde_yaml::from_str(&check(&dump("untouched"), &["-o", "yaml"]).stdout).unwrap();
    assert_eq!(json, yaml);
    let fields: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields, ["fit", "kubernetes", "proposal", "sections"]);
    assert_eq!(json["kubernetes"], Value::Null);
    assert_eq!((&json["fit"]["mode"], &json["fit"]["filter"]["answer"]), (&"Filter".into(), &"yes".into()));
    let titles: Vec<&str> = json["sections"]
        .as_array()
        .unwrap()
        .iter()
        .map(|section| section["title"].as_str().unwrap())
        .collect();
    let expected = [
        "rights",
        "cluster",
        "exposed Services",
        "policies that compare addresses",
        "sidecars",
        "modes",
        "installation",
    ];
    assert_eq!(titles, expected);
    let first = &json["sections"][2]["checks"][0];
    assert_eq!(
        (&first["check"], &first["state"], &first["code"]),
        (&"service".into(), &"failed".into(), &"ISP307".into())
    );
    assert_eq!(first["subject"], format!("Service {GATEWAY}"));
    assert_eq!(json["proposal"]["object"]["kind"], "IngressSourcePreserve");
}

#[test]
fn the_proposed_object_is_written_once_and_replaced_only_by_force() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("isp.yaml");
    let file = path.to_str().unwrap();
    let told = check(&dump("untouched"), &["--write", file]);
    assert_eq!((told.code, told.stderr.as_str()), (Some(2), ""), "{}", told.stdout);
    assert!(
        told.stdout.contains(&format!("written to {file}\n    kubectl isp plan -f {file}\n")),
        "{}",
        told.stdout
    );
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("\nkind: IngressSourcePreserve\n"), "{text}");
    let told = check(&dump("untouched"), &["--write", file]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(1), ""));
    assert_eq!(
        told.stderr,
        format!("error: {file} exists already: name another file, or replace it with --force\n")
    );
    std::fs::write(&path, "something else").unwrap();
    assert_eq!(check(&dump("untouched"), &["--write", file, "--force"]).code, Some(2));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "the same input gives the same text");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    let other = directory.path().join("other.yaml");
    let told = check(sound().path(), &["--write", other.to_str().unwrap()]);
    assert_eq!((told.code, other.exists()), (Some(0), false), "nothing is proposed, and nothing written");
    assert!(told.stdout.contains("nothing was written"), "{}", told.stdout);
}

#[test]
fn sarif_of_check_and_doctor_names_rules_objects_files_and_lines() {
    for command in ["check", "doctor"] {
        let told = run(command, &dump("untouched"), &["-o", "sarif"], "C");
        assert_eq!((told.code, told.stderr.as_str()), (Some(2), ""));
        let log: Value = serde_json::from_str(&told.stdout).unwrap();
        assert_eq!(log["version"], "2.1.0");
        let driver = &log["runs"][0]["tool"]["driver"];
        assert_eq!(driver["name"], "kubectl-isp");
        let results = log["runs"][0]["results"].as_array().unwrap();
        let open = results.iter().find(|result| result["ruleId"] == "ISP701").unwrap();
        assert_eq!(open["level"], "error");
        let rule = &driver["rules"][usize::try_from(open["ruleIndex"].as_u64().unwrap()).unwrap()];
        assert_eq!(rule["id"], "ISP701");
        let help = rule["helpUri"].as_str().unwrap();
        assert!(help.ends_with("docs/doctor.md#isp701-an-address-policy-fails-open"), "{help}");
        let location = &open["locations"][0];
        assert_eq!(location["logicalLocations"][0]["fullyQualifiedName"], "AuthorizationPolicy shop/clients");
        let physical = &location["physicalLocation"];
        let uri = physical["artifactLocation"]["uri"].as_str().unwrap();
        assert!(uri.starts_with("file:///") && uri.ends_with("/untouched/istio.yaml"), "{uri}");
        let line = usize::try_from(physical["region"]["startLine"].as_u64().unwrap()).unwrap();
        let text = std::fs::read_to_string(dump("untouched").join("istio.yaml")).unwrap();
        let object: Vec<&str> = text.lines().skip(line - 1).take(20).collect();
        assert!(object[0].starts_with("- ") && object.contains(&"    namespace: shop"), "{object:?}");
    }
    let log: Value = serde_json::from_str(&check(sound().path(), &["-o", "sarif"]).stdout).unwrap();
    assert_eq!(log["runs"][0]["results"], Value::Array(Vec::new()), "{log:#}");
}

#[test]
fn a_dump_without_services_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.yaml"), "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n")
        .unwrap();
    let told = check(directory.path(), &[]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(1), ""));
    assert!(told.stderr.contains("there is no Service in it"), "{}", told.stderr);
}
