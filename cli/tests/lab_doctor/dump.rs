//! Dumps, as the manual says they are taken; and those that are kept, without what nobody looks at.

use std::path::Path;

use isp_lab::Lab;
use serde_json::Value;

const FILES: [(&str, &str); 5] = [
    ("core", "services,endpointslices,nodes,namespaces,daemonsets,deployments,networkpolicies,ingresses"),
    ("pods", "pods"),
    ("settings", "configmaps"),
    ("webhooks", "mutatingwebhookconfigurations,validatingwebhookconfigurations"),
    ("istio", "authorizationpolicies,envoyfilters,virtualservices,gateways.networking.istio.io"),
];
const OURS: (&str, &str) = ("sourcepreserve", "ingresssourcepreserves,ingresssourcenodes");

/// Writes one, a file for each topic.
pub(crate) async fn take(lab: &Lab, directory: &Path) {
    let installed = lab.kubectl(["get", "crd", "ingresssourcepreserves.sourcepreserve.io"]).await.is_ok();
    for (name, what) in FILES.into_iter().chain(installed.then_some(OURS)) {
        let text = lab.kubectl(["get", what, "-A", "-o", "yaml"]).await.unwrap().stdout;
        std::fs::write(directory.join(format!("{name}.yaml")), text).unwrap();
    }
}

/// Takes one of those that other tests go by.
pub(crate) async fn keep(lab: &Lab, name: &str) {
    if std::env::var_os("ISP_DOCTOR_DUMPS").is_none() {
        return;
    }
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/doctor").join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    take(lab, &directory).await;
    for file in std::fs::read_dir(&directory).unwrap() {
        let path = file.unwrap().path();
        let mut list: Value = serde_yaml::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let items = list["items"].as_array_mut().unwrap();
        items.retain(is_looked_at);
        items.iter_mut().for_each(trim);
        std::fs::write(&path, serde_yaml::to_string(&list).unwrap()).unwrap();
    }
}

/// Of settings, those of kube-proxy and of the mesh.
fn is_looked_at(item: &Value) -> bool {
    let name = item["metadata"]["name"].as_str().unwrap();
    item["kind"] != "ConfigMap" || ["kube-proxy", "istio"].contains(&name)
}

/// Takes out what is long and says nothing here.
fn trim(item: &mut Value) {
    const ANNOTATIONS: [&str; 2] =
        ["kubectl.kubernetes.io/last-applied-configuration", "kubectl.kubernetes.io/restartedAt"];
    if let Some(annotations) = item["metadata"]["annotations"].as_object_mut() {
        annotations.retain(|name, _| !ANNOTATIONS.contains(&name.as_str()));
    }
    if item["kind"] == "Node"
        && let Some(status) = item["status"].as_object_mut()
    {
        status.retain(|name, _| ["addresses", "conditions", "nodeInfo"].contains(&name.as_str()));
    }
    if item["kind"] == "Pod" {
        for list in ["containers", "initContainers"] {
            let containers = item["spec"][list].as_array_mut();
            for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
                container.retain(|name, _| {
                    ["name", "image", "command", "args", "env", "restartPolicy"].contains(&name.as_str())
                });
            }
        }
        let spec = item["spec"].as_object_mut().unwrap();
        spec.retain(|name, _| {
            ["containers", "initContainers", "nodeName", "hostNetwork"].contains(&name.as_str())
        });
    }
}
