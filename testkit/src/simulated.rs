//! A control plane with an operator and simulated nodes. [`agents`] simulates the agents where a
//! test needs them.

pub mod agents;

use std::path::PathBuf;
use std::process::Command;

use isp_api::IngressSourcePreserve;
use isp_api::conditions::find;
use isp_lab::{ControlPlane, free_address};
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use kube::discovery::ApiResource;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::control_plane::{apply, install_crds};
use crate::program::Program;
use crate::snapshot::comparable;
use crate::wait::until;

/// The control plane with its operator.
pub struct Cluster {
    /// Dropped first: without an API server it would only log errors.
    operator: Option<Program>,
    program: PathBuf,
    control_plane: ControlPlane,
    /// A client with all permissions.
    pub client: Client,
}

impl Cluster {
    /// A control plane with the CRDs, an operator of this program, and nodes with these labels.
    pub async fn start(operator: &str, nodes: &[(&str, Value)]) -> Self {
        let mut this = Self::without_operator(operator).await;
        for (name, labels) in nodes {
            this.node(name, labels).await;
        }
        this.start_operator();
        this
    }

    /// The same without nodes, and before the operator is started.
    pub async fn without_operator(operator: &str) -> Self {
        let control_plane = ControlPlane::start().await.unwrap();
        let client = control_plane.client().unwrap();
        install_crds(&control_plane).await;
        control_plane.simulate_nodes().await.unwrap();
        Self { operator: None, program: operator.into(), control_plane, client }
    }

    /// Creates a simulated node.
    pub async fn node(&self, name: &str, labels: &Value) {
        let node = json!({"metadata": {
            "name": name,
            "labels": labels,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        }});
        let node: Node = serde_json::from_value(node).unwrap();
        Api::all(self.client.clone()).create(&PostParams::default(), &node).await.unwrap();
    }

    /// Starts the operator.
    pub fn start_operator(&mut self) {
        let admin = free_address().unwrap();
        let mut command = Command::new(&self.program);
        command
            .args(["--log-format=text", "run", "--agent-image=agent:1", "--namespace=default"])
            .arg(format!("--admin={admin}"))
            .env("KUBECONFIG", self.control_plane.kubeconfig());
        self.operator = Some(Program::start("operator", command, admin).unwrap());
    }

    /// The operator, which must have been started.
    pub fn operator(&self) -> &Program {
        self.operator.as_ref().unwrap()
    }

    /// Creates a namespace.
    pub async fn namespace(&self, name: &str) {
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
    pub async fn create(&self, object: &Value, manager: &str) {
        let parameters = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
        let typed = serde_json::from_value(object.clone()).unwrap();
        self.api(object).create(&parameters, &typed).await.unwrap();
    }

    /// Runs `kubectl apply` and returns its output.
    pub async fn kubectl_apply(&self, object: &Value) -> String {
        apply(&self.control_plane, object).await
    }

    /// Server-side apply by this field manager.
    pub async fn server_side_apply(&self, object: &Value, manager: &str) {
        let name = object["metadata"]["name"].as_str().unwrap();
        let parameters = PatchParams::apply(manager).force();
        self.api(object).patch(name, &parameters, &Patch::Apply(object)).await.unwrap();
    }

    /// Merge patch by this field manager.
    pub async fn merge(&self, object: &Value, manager: &str, patch: Value) {
        let name = object["metadata"]["name"].as_str().unwrap();
        let parameters = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        self.api(object).patch(name, &parameters, &Patch::Merge(patch)).await.unwrap();
    }

    /// The object without fields that change by themselves.
    pub async fn state(&self, object: &Value) -> Value {
        let name = object["metadata"]["name"].as_str().unwrap();
        comparable(json!(self.api(object).get(name).await.unwrap()), false)
    }

    /// The object's resource version.
    pub async fn version(&self, object: &Value) -> String {
        let name = object["metadata"]["name"].as_str().unwrap();
        self.api(object).get(name).await.unwrap().resource_version().unwrap()
    }

    /// An IngressSourcePreserve, with its status.
    pub async fn object(&self, name: &str) -> Value {
        let objects: Api<IngressSourcePreserve> = Api::all(self.client.clone());
        json!(objects.get(name).await.unwrap())
    }

    /// Creates an IngressSourcePreserve.
    pub async fn preserve(&self, name: &str, spec: Value) {
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
    pub async fn wait_for(&self, name: &str, condition: &str, status: &str) -> String {
        let objects: Api<IngressSourcePreserve> = Api::all(self.client.clone());
        until(&format!("{condition}={status} of {name}"), async || {
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
    pub async fn delete(&self, name: &str) {
        let objects: Api<IngressSourcePreserve> = Api::all(self.client.clone());
        objects.delete(name, &DeleteParams::default()).await.unwrap();
        until(&format!("{name} goes"), async || match objects.get_opt(name).await {
            Ok(None) => Ok(()),
            Ok(Some(object)) => Err(json!(object.status).to_string()),
            Err(error) => Err(error.to_string()),
        })
        .await;
    }

    /// Binds DaemonSet pods to their nodes and acknowledges for the agents, until the task is
    /// aborted.
    pub fn stand_in(&self) -> tokio::task::JoinHandle<()> {
        agents::stand_in(self.client.clone())
    }
}
