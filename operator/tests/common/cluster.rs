//! A control plane with an operator, shared by several test programs. Its nodes are simulated;
//! `fleet` simulates the agents where a test needs them.

mod fleet;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use isp_api::IngressSourcePreserve;
use isp_api::conditions::find;
use isp_lab::{ControlPlane, Program, free_address};
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
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
    /// Dropped first: without an API server it would only log errors.
    operator: Option<Program>,
    pub(crate) control_plane: ControlPlane,
    pub(crate) client: Client,
}

impl Cluster {
    /// A control plane with the CRDs, an operator, and nodes with these labels.
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
        let definitions = root.join("crds").display().to_string();
        let output = control_plane.kubectl(&["apply", "--server-side", "-f", &definitions]).await.unwrap();
        assert!(output.success, "{output:?}");
        control_plane.simulate_nodes().await.unwrap();
        Self { operator: None, control_plane, client }
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
        let admin = free_address().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_operator"));
        command
            .args(["--log-format=text", "run", "--agent-image=agent:1", "--namespace=default"])
            .arg(format!("--admin={admin}"))
            .env("KUBECONFIG", self.control_plane.kubeconfig());
        self.operator = Some(Program::start("operator", command, admin).unwrap());
    }

    /// The operator, which must have been started.
    pub(crate) fn operator(&self) -> &Program {
        self.operator.as_ref().unwrap()
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

    /// Creates the object with an update by this field manager, as `kubectl create` and Helm do.
    pub(crate) async fn create(&self, object: &Value, manager: &str) {
        let parameters = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
        let typed = serde_json::from_value(object.clone()).unwrap();
        self.api(object).create(&parameters, &typed).await.unwrap();
    }

    /// Runs `kubectl apply` and returns its output.
    pub(crate) async fn kubectl_apply(&self, object: &Value) -> String {
        let output =
            self.control_plane.kubectl_with_input(&["apply", "-f", "-"], &object.to_string()).await.unwrap();
        assert!(output.success, "{output:?}");
        output.stdout
    }

    /// Server-side apply by this field manager.
    pub(crate) async fn server_side_apply(&self, object: &Value, manager: &str) {
        let name = object["metadata"]["name"].as_str().unwrap();
        let parameters = PatchParams::apply(manager).force();
        self.api(object).patch(name, &parameters, &Patch::Apply(object)).await.unwrap();
    }

    /// Merge patch by this field manager.
    pub(crate) async fn merge(&self, object: &Value, manager: &str, patch: Value) {
        let name = object["metadata"]["name"].as_str().unwrap();
        let parameters = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        self.api(object).patch(name, &parameters, &Patch::Merge(patch)).await.unwrap();
    }

    /// The object without fields that change by themselves.
    pub(crate) async fn state(&self, object: &Value) -> Value {
        let name = object["metadata"]["name"].as_str().unwrap();
        let mut state = json!(self.api(object).get(name).await.unwrap());
        state.as_object_mut().unwrap().remove("status");
        let metadata = state["metadata"].as_object_mut().unwrap();
        metadata.remove("resourceVersion");
        metadata.remove("generation");
        // Maintained by the DaemonSet controller.
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("deprecated.daemonset.template.generation");
        }
        if let Some(managed) = metadata.get_mut("managedFields").and_then(Value::as_array_mut) {
            managed.retain(|entry| entry["subresource"] != "status");
            for entry in managed.iter_mut() {
                entry.as_object_mut().unwrap().remove("time");
            }
            managed.sort_by_key(ToString::to_string);
        }
        state
    }

    /// The object's resource version.
    pub(crate) async fn version(&self, object: &Value) -> String {
        let name = object["metadata"]["name"].as_str().unwrap();
        self.api(object).get(name).await.unwrap().resource_version().unwrap()
    }

    /// An IngressSourcePreserve, with its status.
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

    /// Waits until the condition has this status, and returns its message.
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

    /// Binds DaemonSet pods to their nodes and acknowledges for the agents, until the task is
    /// aborted.
    pub(crate) fn stand_in(&self) -> tokio::task::JoinHandle<()> {
        fleet::stand_in(self.client.clone())
    }
}
