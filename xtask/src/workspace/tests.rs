use super::{DependencyKind, Workspace};

const DESCRIBED: &str = r#"{
  "workspace_root": "/src", "target_directory": "/src/target", "version": 1,
  "packages": [{
    "name": "isp-api", "version": "0.1.0",
    "dependencies": [
      {"name": "kube", "kind": null, "rename": null},
      {"name": "cc", "kind": "build", "rename": null},
      {"name": "yaml_serde", "kind": "dev", "rename": "serde_yaml"}
    ],
    "targets": [
      {"name": "isp_api", "kind": ["lib"]},
      {"name": "crdgen", "kind": ["example"]},
      {"name": "api_schema", "kind": ["test"]}
    ]
  }]
}"#;

#[test]
fn what_cargo_describes_is_understood() {
    let workspace: Workspace = serde_json::from_str(DESCRIBED).unwrap();
    let package = &workspace.packages[0];

    let kinds: Vec<_> = package.dependencies.iter().map(|each| (each.name.as_str(), each.kind)).collect();
    assert_eq!(
        kinds,
        [
            ("kube", DependencyKind::Normal),
            ("cc", DependencyKind::Build),
            ("yaml_serde", DependencyKind::Dev)
        ]
    );
    let tests: Vec<_> = package.targets.iter().filter(|each| each.is_integration_test()).collect();
    assert_eq!(tests.len(), 1);
    assert_eq!(tests[0].name, "api_schema");
    assert_eq!(workspace.program("isp-lab").to_str(), Some("/src/target/debug/isp-lab"));
}
