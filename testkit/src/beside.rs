//! Mode Beside without an operator: agents as processes of a lab's nodes, and the operator's steps
//! taken by hand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use futures_util::future::join_all;
use isp_api::IngressSourceNode;
use isp_api::names::SERVICE_LABEL;
use isp_api::node::{AcknowledgedView, AgentMode};
use isp_api::view::View;
use isp_lab::{Lab, Place};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::process::Process;
use crate::traffic::precedence;
use crate::wait::until;

/// The agent's nftables table, in each family.
pub const TABLE: &str = "ingress-source-preserve";
/// The label that makes every kube-proxy ignore a Service.
const SERVICE_PROXY_NAME: &str = "service.kubernetes.io/service-proxy-name";
/// The name of the object that preserves the Services, and the value of their label.
const OBJECT: &str = "web";

/// The agents of a lab's nodes.
pub struct Agents<'a> {
    lab: &'a Lab,
    program: PathBuf,
    /// The directory of the logs.
    logs: PathBuf,
    options: Vec<String>,
    running: BTreeMap<String, Process>,
    starts: usize,
}

impl<'a> Agents<'a> {
    /// No agent runs yet.
    pub fn new(lab: &'a Lab, program: &str, logs: &Path) -> Self {
        let running = BTreeMap::new();
        Self { lab, program: program.into(), logs: logs.to_owned(), options: Vec::new(), running, starts: 0 }
    }

    /// Starts agents with these options from now on.
    pub fn set_options(&mut self, options: &[&str]) {
        self.options = options.iter().map(|&option| option.to_owned()).collect();
    }

    /// Starts the agent of a node.
    pub async fn start(&mut self, node: &str) {
        // This kubeconfig names the API server as nodes reach it.
        let kubeconfig = self.lab.authority().with_file_name("admin.kubeconfig");
        let kubeconfig = format!("KUBECONFIG={}", kubeconfig.display());
        let program = self.program.to_str().unwrap();
        // The clients have precedence, so the agent must have it as well.
        let mut arguments = precedence().to_vec();
        arguments.extend(["env", &kubeconfig, program, "beside", "--node-name", node]);
        arguments.extend(self.options.iter().map(String::as_str));
        let command = self.lab.command_in(&Place::Node(node.to_owned()), &arguments).await.unwrap();
        let log = self.logs.join(format!("agent-{node}-{}", self.starts));
        self.starts += 1;
        self.running.insert(node.to_owned(), Process::start_in_place(command, &log));
    }

    /// Starts the agent of a node and waits until it has programmed the kernel.
    pub async fn start_and_wait(&mut self, node: &str) {
        self.start(node).await;
        self.wait_until_ready(node).await;
    }

    /// Waits until the agent of a node has programmed the kernel.
    pub async fn wait_until_ready(&self, node: &str) {
        until(&format!("the agent of {node} is ready"), async || {
            let log = self.log(node);
            if log.contains(r#""name":"kernel""#) { Ok(()) } else { Err(log) }
        })
        .await;
    }

    /// The log of the agent that runs on a node.
    pub fn log(&self, node: &str) -> String {
        self.running[node].complained()
    }

    /// Kills the agent of a node.
    pub fn kill(&mut self, node: &str) {
        self.running.get_mut(node).unwrap().kill();
    }

    /// Ends the agent of a node with SIGTERM.
    pub async fn end(&mut self, node: &str) {
        let agent = self.running.get_mut(node).unwrap();
        agent.signal(nix::sys::signal::Signal::SIGTERM);
        let status = agent.end().await;
        assert!(status.success(), "the agent of {node}: {}", agent.complained());
    }

    /// Waits until every running agent reports that the kernel serves exactly these Services.
    pub async fn wait_until_served(&self, services: &[&str]) {
        let wait = async |node: &String| {
            until(&format!("{node} serves {services:?}"), async || {
                let status = report(self.lab, node).await;
                let is_served = status.as_ref().is_some_and(|status| {
                    let mut views = status.views.iter();
                    status.active && views.any(|view| view.received && view.services == services)
                });
                if is_served { Ok(()) } else { Err(status) }
            })
            .await;
        };
        join_all(self.running.keys().map(wait)).await;
    }

    /// Waits until the agent of a node reports that the kernel has this view.
    pub async fn wait_for_view(&self, node: &str, wanted: View) {
        self.wait_for_views(node, |view| view.view == wanted).await;
    }

    /// Waits until the agent of a node reports views, all of which the kernel has and are as
    /// wanted.
    pub async fn wait_for_views(&self, node: &str, wanted: impl Fn(&AcknowledgedView) -> bool) {
        until(&format!("{node} has the wanted views"), async || {
            let status = report(self.lab, node).await;
            let has = status.as_ref().is_some_and(|status| {
                !status.views.is_empty() && status.views.iter().all(|view| view.received && wanted(view))
            });
            if has { Ok(()) } else { Err(status) }
        })
        .await;
    }
}

async fn report(lab: &Lab, node: &str) -> Option<isp_api::node::IngressSourceNodeStatus> {
    let reports: Api<IngressSourceNode> = Api::all(lab.client());
    let name = AgentMode::Beside.report_name(node);
    reports.get_opt(&name).await.unwrap().and_then(|report| report.status)
}

/// Creates the object that preserves these Services, each as namespace and name.
pub async fn create_object(lab: &Lab, services: &[(&str, &str)]) {
    let services = services.iter().map(|(namespace, name)| json!({"namespace": namespace, "name": name}));
    create_object_as(lab, OBJECT, services.collect()).await;
}

/// Creates an object of this name with these entries in `services`.
pub async fn create_object_as(lab: &Lab, name: &str, services: Vec<Value>) {
    let object = json!({
        "apiVersion": "sourcepreserve.io/v1alpha1",
        "kind": "IngressSourcePreserve",
        "metadata": {"name": name},
        "spec": {
            "mode": "Beside",
            "ingressNodes": {"selector": {"matchLabels": {"node-role.kubernetes.io/ingress": ""}}},
            "services": services,
        },
    });
    lab.apply(&object.to_string()).await.unwrap();
}

/// A Service and the operator's steps for it.
#[derive(Clone, Copy)]
pub struct Steps<'a> {
    /// The lab.
    pub lab: &'a Lab,
    /// The namespace of the Service.
    pub namespace: &'a str,
    /// The name of the Service.
    pub service: &'a str,
}

impl Steps<'_> {
    /// Makes the agents serve the Service, or not any more.
    pub async fn preserve(self, wanted: bool) {
        self.label(SERVICE_LABEL, wanted.then_some(OBJECT)).await;
    }

    /// Makes every kube-proxy ignore the Service, or serve it again.
    pub async fn ignore(self, wanted: bool) {
        self.label(SERVICE_PROXY_NAME, wanted.then_some("ingress-source-preserve")).await;
    }

    async fn label(self, key: &str, value: Option<&str>) {
        self.patch(json!({"metadata": {"labels": {key: value}}})).await;
    }

    /// Sets `externalTrafficPolicy`.
    pub async fn set_policy(self, policy: &str) {
        self.patch(json!({"spec": {"externalTrafficPolicy": policy}})).await;
    }

    async fn patch(self, patch: Value) {
        let services: Api<Service> = Api::namespaced(self.lab.client(), self.namespace);
        services.patch(self.service, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }
}

/// Waits until kube-proxy in nftables mode has, or has not, rules for an IPv4 address on each of
/// these nodes.
pub async fn wait_for_kube_proxy(lab: &Lab, nodes: &[&str], address: &str, serves: bool) {
    let wait = async |node: &&str| {
        until(&format!("kube-proxy on {node} serves {address}: {serves}"), async || {
            let list = ["nft", "list", "table", "ip", "kube-proxy"];
            let rules = lab.exec(&Place::Node((*node).to_owned()), &list).await.unwrap();
            rules.stdout.contains(address) == serves
        })
        .await;
    };
    join_all(nodes.iter().map(wait)).await;
}

/// Whether a node has a table of the agent.
pub async fn has_table(lab: &Lab, node: &str) -> bool {
    let tables = lab.exec(&Place::Node(node.to_owned()), &["nft", "list", "tables"]).await.unwrap();
    tables.stdout.contains(TABLE)
}
