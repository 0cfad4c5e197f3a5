use serde_json::{Value, json};

use super::{Crate, CratesError, Graph};

fn package(name: &str, kind: &str, target: &str, license: &str) -> Value {
    json!({
        "id": format!("path+{name}"), "name": name, "version": "1.0.0", "license": license,
        "targets": [{"name": target, "kind": [kind]}],
    })
}

fn node(name: &str, dependencies: &[(&str, Value)]) -> Value {
    let edge =
        |(name, kind): &(&str, Value)| json!({"pkg": format!("path+{name}"), "dep_kinds": [{"kind": kind}]});
    json!({"id": format!("path+{name}"), "deps": dependencies.iter().map(edge).collect::<Vec<_>>()})
}

const LOCK: &str = "\
version = 4

[[package]]
name = \"json\"
version = \"1.0.0\"
source = \"registry+https://github.com/rust-lang/crates.io-index\"
checksum = \"0a0b\"

[[package]]
name = \"isp-operator\"
version = \"1.0.0\"
dependencies = [
 \"json\",
]
";

fn graph() -> Graph {
    let normal = || Value::Null;
    let metadata = json!({
        "packages": [
            package("isp-operator", "bin", "operator", "Apache-2.0"),
            package("json", "lib", "json", "MIT/Apache-2.0"),
            package("memory", "lib", "memory", "MIT"),
            package("derive", "proc-macro", "derive", "MIT"),
            package("syn", "lib", "syn", "MIT"),
            package("cc", "lib", "cc", "MIT"),
            package("proptest", "lib", "proptest", "MIT"),
        ],
        "resolve": {"nodes": [
            node("isp-operator", &[("json", normal()), ("cc", json!("build")), ("proptest", json!("dev"))]),
            node("json", &[("memory", normal()), ("derive", normal())]),
            node("memory", &[]),
            node("derive", &[("syn", normal())]),
            node("syn", &[]),
            node("cc", &[]),
            node("proptest", &[("memory", normal())]),
        ]},
    });
    Graph::read(metadata.to_string().as_bytes(), LOCK).unwrap()
}

#[test]
fn a_program_has_the_crates_that_are_linked_into_it() {
    let linked = graph().linked("operator").unwrap();
    let names: Vec<&str> = linked.crates.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["isp-operator", "json", "memory"]);
    assert_eq!(linked.root, 0);
    assert_eq!(linked.depends_on, [vec![1], vec![2], vec![]]);
    assert_eq!(
        linked.crates[1],
        Crate {
            name: "json".to_owned(),
            version: "1.0.0".to_owned(),
            license: Some("MIT OR Apache-2.0".to_owned()),
            checksum: Some("0a0b".to_owned()),
        }
    );
    assert_eq!(linked.crates[0].checksum, None);
}

#[test]
fn a_program_that_nobody_has_is_named() {
    let error = graph().linked("nothing").unwrap_err();
    assert!(matches!(error, CratesError::NoProgram(ref name) if name == "nothing"), "{error}");
}
