use isp_api::preserve::Mode;
use serde_json::{Value, json};

use super::*;

const MANAGED: &str = "managedFields: [{manager: kubectl, operation: Update, apiVersion: v1}]";

/// A small cluster with a kube-proxy that mounts a ConfigMap, as `kubectl get` prints it.
fn dump(managed: bool) -> Vec<(&'static str, String)> {
    let more = if managed { format!(", {MANAGED}") } else { String::new() };
    let object = |version: &str, kind: &str, name: &str, rest: &str| {
        format!(
            "---\napiVersion: {version}\nkind: {kind}\nmetadata: {{namespace: kube-system, name: {name}{more}}}\n{rest}"
        )
    };
    let set = "spec: {selector: {matchLabels: {k8s-app: kube-proxy}}, template: {metadata: {labels: {k8s-app: kube-proxy}}, \
               spec: {containers: [{name: kube-proxy, image: kube-proxy, command: [/usr/local/bin/kube-proxy], \
               volumeMounts: [{name: kube-proxy, mountPath: /var/lib/kube-proxy}]}], \
               volumes: [{name: kube-proxy, configMap: {name: kube-proxy}}]}}}\n";
    vec![
        ("Service", object("v1", "Service", "web", "spec: {type: LoadBalancer}\n")),
        (
            "EndpointSlice",
            object("discovery.k8s.io/v1", "EndpointSlice", "web", "addressType: IPv4\nendpoints: []\n"),
        ),
        ("Node", object("v1", "Node", "work-1", "")),
        ("Pod", object("v1", "Pod", "any", "spec: {containers: []}\n")),
        ("DaemonSet", object("apps/v1", "DaemonSet", "kube-proxy", set)),
        ("ConfigMap", object("v1", "ConfigMap", "kube-proxy", "data: {}\n")),
        ("Namespace", object("v1", "Namespace", "web", "")),
    ]
}

fn judged(documents: &[(&str, String)], spec: &Value) -> Result<Vec<String>, String> {
    let directory = tempfile::tempdir().unwrap();
    let text: String = documents.iter().map(|(_, text)| text.as_str()).collect();
    std::fs::write(directory.path().join("dump.yaml"), text).unwrap();
    let (contents, _) = read(directory.path()).unwrap();
    let mut objects = contents.objects();
    let object = json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve", "metadata": {"name": "web"}, "spec": spec,
    });
    objects.insert("web".to_owned(), serde_json::from_value(object).unwrap());
    let judged = contents.cluster(Path::new("dump"), objects);
    judged.map(|(_, notes)| notes).map_err(|error| error.to_string())
}

fn spec(sidecars: &Value) -> Value {
    json!({
        "ingressNodes": {"selector": {}}, "services": [{"namespace": "web", "name": "web"}], "sidecars": sidecars,
    })
}

fn without(documents: &[(&'static str, String)], kind: &str) -> Vec<(&'static str, String)> {
    documents.iter().filter(|(known, _)| *known != kind).cloned().collect()
}

#[test]
fn a_whole_dump_has_no_notes() {
    assert_eq!(judged(&dump(true), &spec(&json!([]))), Ok(Vec::new()));
}

#[test]
fn a_kind_that_every_cluster_has_is_asked_for_by_its_command() {
    let whole = dump(true);
    for (kind, plural) in
        [("Service", "services"), ("EndpointSlice", "endpointslices"), ("Node", "nodes"), ("Pod", "pods")]
    {
        let error = judged(&without(&whole, kind), &spec(&json!([]))).unwrap_err();
        let command = format!("`kubectl get {plural} -A --show-managed-fields -o yaml > dump/more.yaml`");
        assert_eq!(error, format!("the dump dump lacks what the plan depends on; add it with {command}"));
    }
    let error = judged(&without(&whole, "ConfigMap"), &spec(&json!([]))).unwrap_err();
    assert!(
        error.ends_with("`kubectl get configmap -n kube-system kube-proxy -o yaml > dump/kube-proxy.yaml`"),
        "{error}"
    );
    let nothing = without(&without(&whole, "Node"), "Pod");
    assert!(judged(&nothing, &spec(&json!([]))).unwrap_err().contains("kubectl get nodes,pods -A "));
}

#[test]
fn a_kind_that_only_sidecars_need_is_asked_for_where_they_are() {
    let entry = |via: &str| {
        spec(&json!([{"namespaceSelector": {}, "podSelector": {}, "interceptionMode": "TPROXY", "via": via}]))
    };
    let bare = without(&dump(true), "Namespace");
    assert_eq!(judged(&bare, &spec(&json!([]))), Ok(Vec::new()));
    assert!(judged(&bare, &entry("Webhook")).unwrap_err().contains("kubectl get namespaces -A "));
    let notes = judged(&dump(true), &entry("Webhook")).unwrap();
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].starts_with("the dump has no ValidatingWebhookConfiguration: "), "{notes:?}");
    let error = judged(&dump(true), &entry("Policy")).unwrap_err();
    assert!(
        error.ends_with("`kubectl get --raw /apis/admissionregistration.k8s.io/v1 > dump/admission.json`"),
        "{error}"
    );
    for served in [
        "---\n{kind: APIResourceList, apiVersion: v1, groupVersion: apps/v1}\n---\n{kind: APIResourceList, apiVersion: v1, \
         groupVersion: admissionregistration.k8s.io/v1, resources: [{name: mutatingadmissionpolicies}]}\n",
        "---\n{kind: MutatingAdmissionPolicy, apiVersion: admissionregistration.k8s.io/v1, metadata: {name: any}}\n",
    ] {
        let mut documents = dump(true);
        documents.push(("served", served.to_owned()));
        assert_eq!(judged(&documents, &entry("Policy")), Ok(Vec::new()));
    }
}

#[test]
fn field_managers_matter_once_the_operator_has_begun() {
    let notes = judged(&dump(false), &spec(&json!([]))).unwrap();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("--show-managed-fields"), "{notes:?}");
    for begun in [
        "{apiVersion: v1, kind: Node, metadata: {name: work-2, labels: {sourcepreserve.io/agent-pool: default}}}",
        "{apiVersion: v1, kind: Service, metadata: {namespace: web, name: a, annotations: {sourcepreserve.io/original: '{}'}}}",
        "{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: kube-system, name: a, \
         labels: {app.kubernetes.io/name: proxy-agent}}, spec: {selector: {}, template: {}}}",
    ] {
        let mut documents = dump(false);
        documents.push(("begun", format!("---\n{begun}\n")));
        let error = judged(&documents, &spec(&json!([]))).unwrap_err();
        let kinds = "serviceaccounts,clusterroles,clusterrolebindings,services,nodes,daemonsets";
        assert!(error.contains(&format!("kubectl get {kinds} -A --show-managed-fields ")), "{error}");
    }
}

#[test]
fn kinds_of_other_projects_with_the_same_name_do_not_count() {
    let mut documents = without(&dump(true), "Service");
    documents.push((
        "knative",
        "---\n{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: a}}\n".to_owned(),
    ));
    assert!(judged(&documents, &spec(&json!([]))).unwrap_err().contains("kubectl get services "));
}

#[test]
fn without_kube_proxy_the_plan_goes_on_with_a_note() {
    let documents = without(&dump(true), "DaemonSet");
    let mut beside = spec(&json!([]));
    beside["mode"] = json!(Mode::Beside);
    let notes = judged(&documents, &beside).unwrap();
    assert!(notes[0].starts_with("the dump has no DaemonSet: "), "{notes:?}");
}
