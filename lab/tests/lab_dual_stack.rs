//! Dual-stack: the same problem, in both families.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::net::IpAddr;

use isp_lab::topology::Families;
use isp_lab::{Answer, EchoApp, Lab, Place, Protocol};
use isp_testkit::answers;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

async fn eventually(lab: &Lab, protocol: Protocol, target: &str, want: impl Fn(&Answer) -> bool) {
    answers::until(lab, "the same in both families", &Place::Client, (protocol, target), want).await;
}

fn target(address: IpAddr, port: u16) -> String {
    std::net::SocketAddr::new(address, port).to_string()
}

#[tokio::test]
async fn the_address_is_lost_and_kept_in_both_families() {
    let lab =
        Lab::builder().name("dual").nodes(["edge-1", "work-1"]).families(Families::Dual).up().await.unwrap();
    let app =
        EchoApp { name: "dual", namespace: "default", node: "edge-1", node_port: 30080, annotations: &[] };
    lab.run_echo(&app).await.unwrap();
    let clients: [IpAddr; 2] = ["198.51.100.10".parse().unwrap(), "2001:db8:1::a".parse().unwrap()];
    let addresses = |node: &str| lab.topology().node(node).unwrap().addresses(Families::Dual);

    for (family, client) in clients.into_iter().enumerate() {
        let elsewhere = addresses("work-1")[family];
        assert_eq!(elsewhere.is_ipv6(), client.is_ipv6());
        for (protocol, port) in [(Protocol::Http, 30080), (Protocol::Tcp, 30081), (Protocol::Udp, 30082)] {
            let lost = |answer: &Answer| answer.peer() == Some(elsewhere);
            eventually(&lab, protocol, &target(elsewhere, port), lost).await;
        }
    }
    let services: Api<Service> = Api::namespaced(lab.client(), "default");
    let local = json!({"spec": {"externalTrafficPolicy": "Local"}});
    services.patch("dual", &PatchParams::default(), &Patch::Merge(local)).await.unwrap();
    for (family, client) in clients.into_iter().enumerate() {
        for (protocol, port) in [(Protocol::Http, 30080), (Protocol::Tcp, 30081), (Protocol::Udp, 30082)] {
            let kept = |answer: &Answer| answer.peer() == Some(client);
            eventually(&lab, protocol, &target(addresses("edge-1")[family], port), kept).await;
            let silent = |answer: &Answer| *answer == Answer::Silent("timed out".to_owned());
            eventually(&lab, protocol, &target(addresses("work-1")[family], port), silent).await;
        }
    }
}
