use super::{Violation, violations};
use crate::workspace::DependencyKind::{self, Build, Dev, Normal};
use crate::workspace::{Dependency, Package};

/// All crates of the table without dependencies, except `krate`, which has this one.
fn workspace_where(krate: &str, kind: DependencyKind, on: &str) -> Vec<Package> {
    let names = super::RULES.iter().map(|rule| rule.of);
    let mut packages: Vec<_> = names.map(|name| package(name, vec![])).collect();
    packages.retain(|each| each.name != krate);
    packages.push(package(krate, vec![Dependency { name: on.to_owned(), kind }]));
    packages
}

fn package(name: &str, dependencies: Vec<Dependency>) -> Package {
    Package { name: name.to_owned(), dependencies, targets: vec![] }
}

#[test]
fn dependencies_along_the_table_are_fine() {
    for (krate, kind, on) in [
        ("isp-api", Normal, "kube"),
        ("isp-api", Dev, "isp-lab"),
        ("isp-dataplane", Normal, "thiserror"),
        ("isp-dataplane", Dev, "isp-lab"),
        ("isp-dataplane", Dev, "tokio"),
        ("isp-runtime", Normal, "tokio"),
        ("isp-operator", Normal, "isp-api"),
        ("isp-operator", Normal, "isp-runtime"),
        ("isp-webhook", Normal, "isp-api"),
        ("isp-proxy-agent", Normal, "isp-dataplane"),
        ("isp-cli", Normal, "isp-dataplane"),
        ("isp-cli", Dev, "isp-lab"),
        ("isp-echo", Normal, "tokio"),
        ("isp-lab", Normal, "isp-api"),
        ("isp-lab", Dev, "isp-operator"),
        ("isp-testkit", Normal, "isp-lab"),
        ("isp-plan", Dev, "isp-testkit"),
        ("isp-lab", Dev, "isp-testkit"),
        ("xtask", Build, "isp-api"),
    ] {
        assert_eq!(violations(&workspace_where(krate, kind, on)), [], "{krate} on {on}");
    }
}

#[test]
fn dependencies_against_the_table_are_found() {
    for (krate, kind, on) in [
        ("isp-api", Normal, "isp-dataplane"),
        ("isp-api", Normal, "isp-lab"),
        ("isp-api", Build, "isp-lab"),
        ("isp-api", Dev, "isp-operator"),
        ("isp-dataplane", Normal, "isp-api"),
        ("isp-runtime", Normal, "isp-api"),
        ("isp-operator", Normal, "isp-webhook"),
        ("isp-operator", Dev, "isp-webhook"),
        ("isp-webhook", Normal, "isp-operator"),
        ("isp-proxy-agent", Normal, "isp-cli"),
        ("isp-cli", Normal, "isp-lab"),
        ("isp-echo", Normal, "isp-api"),
        ("isp-testkit", Normal, "isp-operator"),
        ("isp-operator", Normal, "isp-testkit"),
        // Not even those that may use any other crate.
        ("isp-lab", Normal, "isp-testkit"),
        ("xtask", Build, "isp-testkit"),
    ] {
        let expected = Violation::Direction { krate: krate.to_owned(), on: on.to_owned() };
        assert_eq!(violations(&workspace_where(krate, kind, on)), [expected], "{krate} on {on}");
    }
}

#[test]
fn the_data_plane_does_not_reach_the_outside_world() {
    for on in ["tokio", "nix", "rtnetlink"] {
        for kind in [Normal, Build] {
            let expected = Violation::Impure { krate: "isp-dataplane".to_owned(), on: on.to_owned() };
            assert_eq!(violations(&workspace_where("isp-dataplane", kind, on)), [expected]);
        }
    }
}

#[test]
fn a_crate_without_a_rule_says_where_to_add_one() {
    let found = violations(&workspace_where("isp-new", Normal, "isp-api"));

    assert_eq!(found, [Violation::Unknown { krate: "isp-new".to_owned() }]);
    assert!(found[0].to_string().contains("xtask/src/directions.rs"));
}

#[test]
fn every_wrong_dependency_is_reported_at_once() {
    let mut packages = workspace_where("isp-api", Normal, "isp-runtime");
    packages.retain(|each| each.name != "isp-echo");
    packages.push(package("isp-echo", vec![Dependency { name: "isp-lab".to_owned(), kind: Normal }]));

    let message = super::check(&packages).unwrap_err().to_string();

    assert_eq!(message, "isp-api must not depend on isp-runtime; isp-echo must not depend on isp-lab");
}
