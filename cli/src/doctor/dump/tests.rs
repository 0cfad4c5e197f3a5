#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use isp_plan::Key;

use super::*;

const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata: {namespace: web, name: frontend, creationTimestamp: '2026-01-02T03:04:05Z'}\n";

fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    directory
}

fn names(files: &[(&str, &str)]) -> Vec<Key> {
    read(directory(files).path()).unwrap().0.services.into_keys().collect()
}

fn problem(files: &[(&str, &str)]) -> String {
    let directory = directory(files);
    let error = read(directory.path()).unwrap_err().to_string();
    error.replace(&format!("{}/", directory.path().display()), "")
}

#[test]
fn documents_lists_and_directories_are_read_in_yaml_and_json() {
    let several = format!("---\n{SERVICE}---\n# nothing\n---\n{}", SERVICE.replace("frontend", "b"));
    let list = r#"{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "web", "name": "c"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "web", "name": "c"}}]}"#;
    let typed = "apiVersion: v1\nkind: ServiceList\nitems: [{metadata: {namespace: web, name: d}}]\n";
    let files = [
        ("a.yaml", several.as_str()),
        ("b.json", list),
        ("deep/er/d.yml", typed),
        ("notes.txt", "{not: [yaml"),
    ];
    let expected: Vec<Key> = ["b", "c", "d", "frontend"].map(|name| Key::new("web", name)).into();
    assert_eq!(names(&files), expected);
}

#[test]
fn an_object_in_two_files_is_one() {
    let slice = "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {namespace: web, name: a, labels: {kubernetes.io/service-name: web}}\n\
                 addressType: IPv4\nendpoints: [{addresses: [10.0.0.1], nodeName: edge-1}]\n";
    let (cluster, _) = read(directory(&[("a.yaml", slice), ("b.yaml", slice)]).path()).unwrap();
    assert_eq!(cluster.ready_endpoints(&Key::new("web", "web")), [("edge-1", 1)].into());
}

#[test]
fn a_dump_is_as_old_as_the_latest_time_in_it() {
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {conditions: [{type: Ready, status: 'True', lastHeartbeatTime: '2026-02-01T00:00:00Z'}]}\n";
    let (_, now) = read(directory(&[("a.yaml", SERVICE), ("b.yaml", node)]).path()).unwrap();
    assert_eq!(now.to_string(), "2026-02-01T00:00:00Z");
}

#[test]
fn what_is_broken_is_named_with_file_and_line() {
    let broken = format!("{SERVICE}spec: {{type: [}}\n");
    let text = problem(&[("web.yaml", &broken)]);
    assert!(text.starts_with("web.yaml: ") && text.contains("line 4"), "{text}");
    let wrong = format!("---\n{SERVICE}spec: {{ports: 80}}\n")
        .replace("{namespace: web, name: frontend,", "{name: frontend,");
    let text = problem(&[("web.yaml", &wrong)]);
    assert!(text.starts_with("web.yaml, Service frontend") && text.contains("invalid type"), "{text}");
    let block = "apiVersion: v1\nkind: Service\nmetadata:\n  name: frontend\nspec:\n  ports: 80\n";
    assert!(problem(&[("web.yaml", block)]).starts_with("web.yaml, Service frontend (line 4): "));
    assert!(problem(&[("web.txt", "")]).contains("there is no object in it"));
    assert!(
        read(Path::new("/nowhere/dump")).unwrap_err().to_string().starts_with("cannot read /nowhere/dump: ")
    );
}
