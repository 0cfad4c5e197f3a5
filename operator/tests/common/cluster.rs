//! A control plane with an operator, for several test programs. Its nodes are simulated; where agents are wanted, this stands in for the
//! scheduler and for the agents, neither of which can run without real nodes.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use isp_api::conditions::find;
use isp_api::{IngressSourceNode, IngressSourcePreserve};
use isp_lab::ControlPlane;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use kube::discovery::ApiResource;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

const DEADLINE: Duration = Duration::from_mins(1);

pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let started = Instant::now();
    loop {
        match look().await {
            Ok(found) => return found,
            Err(seen) => assert!(started.elapsed() < DEADLINE, "{what}: not within 60 s; last seen: {seen}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

pub(crate) struct Cluster {
    pub(crate) control_plane: ControlPlane,
    pub(crate) client: Client,
    operator: Option<Child>,
    /// Where the operator serves its metrics.
    pub(crate) admin: SocketAddr,
    log: tempfile::NamedTempFile,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(operator) = &mut self.operator {
            let _ = operator.kill();
            let _ = operator.wait();
        }
        if std::thread::panicking() {
            eprintln!(
                "the operator's log:\n{}",
                std::fs::read_to_string(self.log.path()).unwrap_or_default()
            );
        }
    }
}

impl Cluster {
    /// A control plane, the project's resources, an operator, and nodes with these labels.
    pub(crate) async fn start(nodes: &[(&str, Value)]) -> Self {
        let mut this = Self::without_operator().await;
        for (name, labels) in nodes {
            this.node(name, labels).await;
        }
        this.start_operator();
        this
    }

    pub(crate) async fn without_operator() -> Self {
        let control_plane = ControlPlane::start().await.unwrap();
        let client = control_plane.client().unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for part in ["crds", "manifests/agent"] {
            let path = root.join(part).display().to_string();
            let output = control_plane.kubectl(&["apply", "--server-side", "-f", &path]).await.unwrap();
            assert!(output.success, "{output:?}");
        }
        control_plane.simulate_nodes().await.unwrap();
        let admin = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let log = tempfile::NamedTempFile::new().unwrap();
        Self { control_plane, client, operator: None, admin, log }
    }

    pub(crate) async fn node(&self, name: &str, labels: &Value) {
        let node = json!({"metadata": {
            "name": name,
            "labels": labels,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        }});
        let node: Node = serde_json::from_value(node).unwrap();
        Api::all(self.client.clone()).create(&PostParams::default(), &node).await.unwrap();
    }

    pub(crate) fn start_operator(&mut self) {
        let operator = Command::new(env!("CARGO_BIN_EXE_operator"))
            .args(["--log-format=text", "run", "--agent-image=agent:1", "--namespace=default"])
            .arg(format!("--admin={}", self.admin))
            .env("KUBECONFIG", self.control_plane.kubeconfig())
            .stdin(Stdio::null())
            .stderr(self.log.reopen().unwrap())
            .spawn()
            .unwrap();
        self.operator = Some(operator);
    }

    /// The operator's process.
    pub(crate) fn operator_id(&self) -> u32 {
        self.operator.as_ref().unwrap().id()
    }

    pub(crate) async fn namespace(&self, name: &str) {
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        Api::all(self.client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    }

    fn api(&self, object: &Value) -> Api<DynamicObject> {
        let kind = object["kind"].as_str().unwrap();
        let (group, version) = object["apiVersion"].as_str().unwrap().rsplit_once('/').unwrap_or(("", "v1"));
        let resource = ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(group, version, kind));
        match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// Created by an update manager of this name, as `kubectl create` or Helm do.
    pub(crate) async fn create(&self, object: &Value, manager: &str) {
        let parameters = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
        let typed = serde_json::from_value(object.clone()).unwrap();
        self.api(object).create(&parameters, &typed).await.unwrap();
    }

    /// By `kubectl apply`. What it says.
    pub(crate) async fn kubectl_apply(&self, object: &Value) -> String {
        let output =
            self.control_plane.kubectl_with_input(&["apply", "-f", "-"], &object.to_string()).await.unwrap();
        assert!(output.success, "{output:?}");
        output.stdout
    }

    /// By server-side apply in this manager's name.
    pub(crate) async fn server_side_apply(&self, object: &Value, manager: &str) {
        let name = object["metadata"]["name"].as_str().unwrap();
        let parameters = PatchParams::apply(manager).force();
        self.api(object).patch(name, &parameters, &Patch::Apply(object)).await.unwrap();
    }

    /// By a merge patch in this manager's name.
    pub(crate) async fn merge(&self, object: &Value, manager: &str, patch: Value) {
        let name = object["metadata"]["name"].as_str().unwrap();
        let parameters = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        self.api(object).patch(name, &parameters, &Patch::Merge(patch)).await.unwrap();
    }

    /// The object as it is, without what changes by itself.
    pub(crate) async fn state(&self, object: &Value) -> Value {
        let name = object["metadata"]["name"].as_str().unwrap();
        let mut state = json!(self.api(object).get(name).await.unwrap());
        state.as_object_mut().unwrap().remove("status");
        let metadata = state["metadata"].as_object_mut().unwrap();
        metadata.remove("resourceVersion");
        metadata.remove("generation");
        // The DaemonSet controller's own count of changes.
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("deprecated.daemonset.template.generation");
        }
        let managed = metadata.get_mut("managedFields").and_then(Value::as_array_mut).unwrap();
        managed.retain(|entry| entry["subresource"] != "status");
        for entry in managed.iter_mut() {
            entry.as_object_mut().unwrap().remove("time");
        }
        managed.sort_by_key(ToString::to_string);
        state
    }

    /// Its resource version.
    pub(crate) async fn version(&self, object: &Value) -> String {
        let name = object["metadata"]["name"].as_str().unwrap();
        self.api(object).get(name).await.unwrap().resource_version().unwrap()
    }

    /// An IngressSourcePreserve, whole.
    pub(crate) async fn object(&self, name: &str) -> Value {
        let objects: Api<IngressSourcePreserve> = Api::all(self.client.clone());
        json!(objects.get(name).await.unwrap())
    }

    pub(crate) async fn preserve(&self, name: &str, spec: Value) {
        let object: IngressSourcePreserve = serde_json::from_value(json!({
            "apiVersion": "sourcepreserve.io/v1alpha1",
            "kind": "IngressSourcePreserve",
            "metadata": {"name": name},
            "spec": spec,
        }))
        .unwrap();
        Api::all(self.client.clone()).create(&PostParams::default(), &object).await.unwrap();
    }

    /// Waits until the condition is as wanted. Its message.
    pub(crate) async fn wait_for(&self, name: &str, condition: &str, status: &str) -> String {
        let objects: Api<IngressSourcePreserve> = Api::all(self.client.clone());
        eventually(&format!("{condition}={status} of {name}"), async || {
            let object = objects.get(name).await.map_err(|error| error.to_string())?;
            let said = object.status.unwrap_or_default();
            match find(&said.conditions, condition) {
                Some(found)
                    if found.status == status && said.observed_generation == object.metadata.generation =>
                {
                    Ok(found.message.clone())
                }
                _ => Err(json!(said).to_string()),
            }
        })
        .await
    }

    /// Deletes the object and waits until it is gone.
    pub(crate) async fn delete(&self, name: &str) {
        let objects: Api<IngressSourcePreserve> = Api::all(self.client.clone());
        objects.delete(name, &DeleteParams::default()).await.unwrap();
        eventually(&format!("{name} goes"), async || match objects.get_opt(name).await {
            Ok(None) => Ok(()),
            Ok(Some(object)) => Err(json!(object.status).to_string()),
            Err(error) => Err(error.to_string()),
        })
        .await;
    }

    /// Binds the pods of DaemonSets to their nodes and acknowledges for the agents among them, until dropped.
    pub(crate) fn stand_in(&self) -> tokio::task::JoinHandle<()> {
        let client = self.client.clone();
        tokio::spawn(async move {
            let mut said = BTreeMap::new();
            loop {
                // The API server may be busy; there is a next time.
                let _ = bind(&client).await;
                let _ = acknowledge(&client, &mut said).await;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        })
    }
}

/// A DaemonSet's pod names its node in its affinity; a scheduler would do no more.
async fn bind(client: &Client) -> Result<(), kube::Error> {
    let pods: Api<Pod> = Api::all(client.clone());
    for pod in pods.list(&ListParams::default().fields("spec.nodeName=")).await? {
        let spec = json!(pod.spec);
        let terms = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        let node = &terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0];
        if let (Some(node), Some(namespace)) = (node.as_str(), pod.namespace()) {
            let binding = json!({
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod.name_any()},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node},
            });
            let path = format!("/api/v1/namespaces/{namespace}/pods/{}/binding", pod.name_any());
            let request = http::Request::post(path)
                .header("Content-Type", "application/json")
                .body(binding.to_string().into_bytes())
                .unwrap();
            client.request_text(request).await?;
        }
    }
    Ok(())
}

/// What agents say once their kube-proxies have read the view, by pod: on change only, as they do.
async fn acknowledge(client: &Client, said: &mut BTreeMap<String, Vec<Value>>) -> Result<(), kube::Error> {
    let objects: Api<IngressSourcePreserve> = Api::all(client.clone());
    let views: Vec<Value> = objects
        .list(&ListParams::default())
        .await?
        .iter()
        .map(|object| {
            json!({
                "object": object.name_any(), "uid": object.uid(), "generation": object.metadata.generation,
                "view": "ClusterOnly", "relisted": true,
            })
        })
        .collect();
    let pods: Api<Pod> = Api::all(client.clone());
    for pod in pods.list(&ListParams::default().labels("app.kubernetes.io/name=proxy-agent")).await? {
        let running = pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"));
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let Some(node) = node.filter(|_| running && pod.metadata.deletion_timestamp.is_none()) else {
            continue;
        };
        if said.get(&pod.name_any()) == Some(&views) {
            continue;
        }
        let pool = pod.labels()["sourcepreserve.io/agent-pool"].clone();
        let mut report = json!({
            "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourceNode", "metadata": {"name": node},
        });
        let reports: Api<IngressSourceNode> = Api::all(client.clone());
        let mine = PatchParams::apply("agents").force();
        reports.patch(&node, &mine, &Patch::Apply(&report)).await?;
        report["status"] = json!({"pool": pool, "mode": "Filter", "proxyConnected": true, "views": views});
        reports.patch_status(&node, &mine, &Patch::Apply(&report)).await?;
        said.insert(pod.name_any(), views.clone());
    }
    Ok(())
}
