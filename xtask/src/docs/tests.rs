use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use super::{DocsError, Files, PAGES, test_names};

/// A temporary repository, removed after the test.
struct Repository(PathBuf);

impl Repository {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let root = std::env::temp_dir().join(format!("isp-docs-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self(root)
    }

    fn problems(&self) -> Vec<String> {
        let files = Files::read(&self.0).unwrap();
        files.find_problems(&BTreeSet::from(["isp_api".to_owned()])).iter().map(ToString::to_string).collect()
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const SOURCE: &str = "\
struct Metrics {
    leader: Gauge,
}
fn register(registry: &mut Registry) {
    let registry = registry.sub_registry_with_prefix(\"isp_operator\");
    registry.register(\"leader\", \"Whether it acts\", self.leader.clone());
}
#[test]
fn it_works() {
    docs::commands(\"README.md\", \"it_works\");
}
";

#[test]
fn a_repository_whose_docs_are_right_has_no_problem() {
    let readme =
        "# Top\n[more](docs/a.md#one) with `isp_api`\n```sh test=it_works\nkubectl apply -k manifests\n```\n";
    let page = "# One\n`isp_operator_leader`, 2 s <!-- measured: lab.up -->\n";
    let alerts = format!("expr: isp_operator_leader\nrunbook_url: {PAGES}docs/a.md#one\n");
    let repository = Repository::new(
        "right",
        &[
            ("README.md", readme),
            ("docs/a.md", page),
            ("docs/monitoring/alerts.yaml", &alerts),
            ("docs/measured/lab.yaml", "{command: c, machine: m, date: 2026-01-31, figures: {up: 2 s}}"),
            ("manifests/x.yaml", ""),
            ("src/lib.rs", SOURCE),
            ("src/lib/tests.rs", &SOURCE.replace("leader", "follower")),
            ("target/debug/wrong.md", "[gone](gone.md)"),
            ("dist/NOTES.md", "[gone](gone.md)"),
        ],
    );
    assert_eq!(repository.problems(), [""; 0]);
}

#[test]
fn each_kind_of_problem_is_found_in_its_place() {
    let alerts = format!(
        "expr: isp_operator_nodes\nrunbook_url: {PAGES}README.md#top\nother:\n  runbook_url: docs/a.md\n"
    );
    let repository = Repository::new(
        "wrong",
        &[
            (
                "README.md",
                "[more](docs/b.md)\n```sh\nkubectl apply -k manifests/gone\n```\nisp_operator_lead, `it_does_not_work`, `apiserver_admission_fail_open_count`",
            ),
            ("docs/monitoring/alerts.yaml", &alerts),
            ("src/lib.rs", SOURCE),
        ],
    );
    assert_eq!(
        repository.problems(),
        [
            "README.md:1: there is no docs/b.md",
            "README.md:2: a block of commands needs one of test=<function> and needs=<what>",
            "README.md:3: there is no manifests/gone",
            "README.md:5: there is no test it_does_not_work",
            "README.md:5: no program exports isp_operator_lead",
            "docs/monitoring/alerts.yaml:1: no program exports isp_operator_nodes",
            "docs:1: isp_operator_leader is exported, but no page documents it",
            "docs/monitoring/alerts.yaml:2: there is no heading #top in README.md",
            &format!("docs/monitoring/alerts.yaml:4: docs/a.md is not below {PAGES}"),
        ]
    );
}

#[test]
fn a_file_that_cannot_be_understood_is_named() {
    let repository = Repository::new("broken", &[("docs/monitoring/dashboard.json", "{")]);
    match Files::read(&repository.0).map(drop) {
        Err(DocsError::Malformed { path, .. }) => assert_eq!(path, "docs/monitoring/dashboard.json"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn tests_are_found_by_their_attribute_whatever_stands_between() {
    let source = "#[tokio::test(flavor = \"multi_thread\")]\n#[should_panic]\nasync fn one() {}\nfn helper() {}\n#[test]\n// why\nfn two() {}\n";
    assert_eq!(test_names(source), ["one", "two"]);
}
