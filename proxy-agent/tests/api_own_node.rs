//! An agent may write the IngressSourceNode of its own node only: the admission policy on a real
//! API server, with real tokens.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use isp_api::IngressSourceNode;
use isp_api::node::AgentMode;
use isp_lab::ControlPlane;
use isp_testkit::agent::{self, NODE};
use isp_testkit::until;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Config};
use serde_json::json;

const OTHER: &str = "work-2";

/// Makes a client of the API server with this token only.
fn client(cluster: &ControlPlane, token: String) -> Client {
    let api_server = agent::api_server(cluster);
    let authority: k8s_openapi::ByteString =
        serde_json::from_value(api_server["certificate-authority-data"].clone()).unwrap();
    let mut config = Config::new(api_server["server"].as_str().unwrap().parse().unwrap());
    config.root_cert = Some(config_certificates(&authority.0));
    config.auth_info.token = Some(token.into());
    Client::try_from(config).unwrap()
}

fn config_certificates(pem: &[u8]) -> Vec<Vec<u8>> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    CertificateDer::pem_slice_iter(pem).map(|certificate| certificate.unwrap().to_vec()).collect()
}

/// Writes the object and then its status, as an agent does. Returns the message of a refusal.
async fn write(client: &Client, node: &str) -> Result<(), String> {
    write_mode(client, node, AgentMode::Filter).await
}

async fn write_mode(client: &Client, node: &str, mode: AgentMode) -> Result<(), String> {
    let nodes: Api<IngressSourceNode> = Api::all(client.clone());
    let mine = PatchParams::apply("test").force();
    let mut object = json!({
        "apiVersion": "sourcepreserve.io/v1alpha1",
        "kind": "IngressSourceNode",
        "metadata": {"name": node},
    });
    let refused = |error: kube::Error| match error {
        kube::Error::Api(status) if status.code == 403 => status.message,
        other => panic!("{other:?}"),
    };
    nodes.patch(node, &mine, &Patch::Apply(&object)).await.map_err(refused)?;
    object["status"] = json!({"pool": "default", "mode": mode, "views": [], "active": true});
    nodes.patch_status(node, &mine, &Patch::Apply(&object)).await.map(drop).map_err(refused)
}

async fn status_alone(client: &Client, node: &str) -> Result<(), String> {
    let nodes: Api<IngressSourceNode> = Api::all(client.clone());
    let status = json!({"status": {"active": false}});
    match nodes.patch_status(node, &PatchParams::default(), &Patch::Merge(&status)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 403 => Err(status.message),
        Err(other) => panic!("{other:?}"),
    }
}

/// Creates a token as the kubelet gets it for a pod on the node.
async fn pod_token(cluster: &ControlPlane) -> String {
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "agent-of-the-test", "namespace": "kube-system"},
        "spec": {
            "nodeName": NODE,
            "serviceAccountName": "proxy-agent",
            "containers": [{"name": "agent", "image": "none"}],
        },
    });
    let made = cluster.kubectl_with_input(&["create", "-f", "-"], &pod.to_string()).await.unwrap();
    assert!(made.success, "{made:?}");
    let bound = ["--bound-object-kind", "Pod", "--bound-object-name", "agent-of-the-test"];
    agent::token(cluster, "proxy-agent", &bound).await
}

#[tokio::test]
async fn an_agent_writes_the_object_of_its_own_node_only_and_needs_a_token_that_names_it() {
    let cluster = ControlPlane::shared().await.unwrap();
    agent::install(cluster).await;
    let admin = cluster.client().unwrap();
    let unbound = client(cluster, agent::token(cluster, "proxy-agent", &[]).await);

    // The API server takes a moment to enforce a new policy.
    let message = until("the policy has an effect", async || write(&unbound, NODE).await.err()).await;
    assert!(message.contains("is bound to no node"), "{message}");
    assert!(message.contains("--bound-object-kind Node --bound-object-name work-1"), "{message}");

    // Other users are not affected.
    assert_eq!(write(&admin, NODE).await, Ok(()));
    assert_eq!(write(&admin, OTHER).await, Ok(()));

    let node_flags = ["--bound-object-kind", "Node", "--bound-object-name", NODE];
    let by_node = client(cluster, agent::token(cluster, "proxy-agent", &node_flags).await);
    let by_pod = client(cluster, pod_token(cluster).await);
    for own in [by_node, by_pod] {
        assert_eq!(write(&own, NODE).await, Ok(()));
        assert_eq!(status_alone(&own, NODE).await, Ok(()));
        // A node has a report for each mode, and neither passes for the other.
        let beside = AgentMode::Beside.report_name(NODE);
        assert_eq!(write_mode(&own, &beside, AgentMode::Beside).await, Ok(()));
        for (name, mode) in [(beside.as_str(), AgentMode::Filter), (NODE, AgentMode::Beside)] {
            let message = write_mode(&own, name, mode).await.unwrap_err();
            assert!(message.contains("status.mode: ") && message.contains("adds .beside"), "{message}");
        }
        for refused in [write(&own, OTHER).await, write(&own, "new").await, status_alone(&own, OTHER).await] {
            let message = refused.unwrap_err();
            assert!(
                message.contains("is not the node of this agent, whose token is bound to work-1"),
                "{message}"
            );
        }
    }
    assert!(status_alone(&unbound, NODE).await.unwrap_err().contains("is bound to no node"));
}
