use super::Layer;
use crate::workspace::Package;

fn packages() -> Vec<Package> {
    let described = r#"[
      {"name": "isp-api", "dependencies": [], "targets": [
        {"name": "isp_api", "kind": ["lib"]}, {"name": "lab_like", "kind": ["example"]},
        {"name": "api_schema", "kind": ["test"]}, {"name": "samples", "kind": ["test"]}]},
      {"name": "isp-lab", "dependencies": [], "targets": [
        {"name": "isp-lab", "kind": ["bin"]},
        {"name": "api_control_plane", "kind": ["test"]}, {"name": "lab_up_down", "kind": ["test"]},
        {"name": "lab_lifecycle", "kind": ["test"]}, {"name": "lab_other", "kind": ["test"]},
        {"name": "lab_mesh", "kind": ["test"]}, {"name": "lab_operator", "kind": ["test"]},
        {"name": "samples", "kind": ["test"]}]}
    ]"#;
    serde_json::from_str(described).unwrap()
}

fn runs(layer: Layer) -> Vec<String> {
    layer.stages(&packages()).iter().flatten().map(|words| words.join(" ")).collect()
}

#[test]
fn a_test_belongs_to_the_layer_that_its_name_begins_with() {
    for (test, layer) in [
        ("api_schema", Layer::Api),
        ("browser_report", Layer::Browser),
        ("kernel_nft", Layer::Kernel),
        ("lab_up_down", Layer::Lab),
        ("lab", Layer::Lab),
        ("echo", Layer::Unit),
        ("unit_golden", Layer::Unit),
        ("apiary", Layer::Unit),
        ("labels_are_stable", Layer::Unit),
        ("echo_api_lab", Layer::Unit),
    ] {
        assert_eq!(Layer::of(test), layer, "{test}");
    }
}

#[test]
fn the_unit_layer_has_all_code_and_the_tests_of_no_other_layer() {
    assert_eq!(
        runs(Layer::Unit),
        [
            "test --workspace --no-fail-fast --test samples --lib --bins --examples",
            "test --workspace --no-fail-fast --doc"
        ]
    );
}

#[test]
fn a_layer_is_built_in_one_go_for_every_crate() {
    assert_eq!(
        runs(Layer::Api),
        [
            "test --workspace --no-fail-fast --test api_control_plane --test api_schema --no-run",
            "test --workspace --test api_control_plane",
            "test --workspace --test api_schema",
        ]
    );
}

#[test]
fn labs_run_side_by_side_the_longest_first() {
    let stages: Vec<Vec<String>> = Layer::Lab
        .stages(&packages())
        .iter()
        .map(|stage| stage.iter().map(|words| words.join(" ")).collect())
        .collect();
    let run = |name: &str| format!("test --workspace --test {name} -- --test-threads=1");
    assert_eq!(
        stages,
        [
            vec![
                "test --workspace --no-fail-fast --test lab_lifecycle --test lab_mesh --test lab_operator --test lab_other \
                 --test lab_up_down --no-run"
                    .to_owned()
            ],
            ["lab_operator", "lab_mesh", "lab_lifecycle", "lab_other", "lab_up_down"].map(run).to_vec(),
        ]
    );
}

#[test]
fn a_layer_without_tests_does_not_run_those_of_others() {
    assert_eq!(runs(Layer::Kernel), [""; 0]);
}
