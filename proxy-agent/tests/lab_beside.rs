//! Mode Beside on real nodes: agents serve a Service from tables of their own, the stock kube-proxy
//! ignores it and is not touched. The test takes the steps that the operator would take.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::time::{Duration, Instant};

use isp_lab::{KubeProxyState, Place, Protocol};
use isp_testkit::beside::{Agents, Steps, TABLE, create_object, has_table, wait_for_kube_proxy};
use isp_testkit::traffic::{STEADY, Traffic};
use isp_testkit::web_lab::{CLIENT, EDGE, ELSEWHERE, EXTERNAL, WebLab};
use isp_testkit::{answers, preserve, until};

const NODES: [&str; 3] = [EDGE, ELSEWHERE[0], ELSEWHERE[1]];
/// Repairs take milliseconds; this bounds them on a busy machine.
const REPAIRED: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_service_is_served_beside_an_untouched_kube_proxy_without_a_failed_request() {
    let web = WebLab::up("beside", env!("CARGO_BIN_EXE_proxy-agent")).await;
    preserve::install(&web.lab).await;
    let kube_proxy = KubeProxyState::look(&web.lab).await.unwrap();
    let frontend = Steps { lab: &web.lab, namespace: "web", service: "frontend" };
    create_object(&web.lab, &[("web", "frontend")]).await;
    frontend.preserve(true).await;
    let traffic = Traffic::start(&web, STEADY).await;

    let mut agents = Agents::new(&web.lab, env!("CARGO_BIN_EXE_proxy-agent"), web.logs());
    for node in NODES {
        agents.start(node).await;
    }
    agents.wait_until_served(&["web/frontend"]).await;
    frontend.ignore(true).await;
    wait_for_kube_proxy(&web.lab, &NODES, &web.cluster_ip, false).await;
    frontend.set_policy("Local").await;
    let target = (Protocol::Http, format!("{EXTERNAL}:80"));
    let is_kept = |answer: &isp_lab::Answer| answer.peer() == Some(CLIENT);
    answers::until(&web.lab, "the client's IP", &Place::Client, (target.0, &target.1), is_kept).await;

    // Each agent is killed and starts again; the tables stay, and are found current.
    for node in NODES {
        agents.kill(node);
        assert!(has_table(&web.lab, node).await, "{node}");
        agents.start_and_wait(node).await;
        assert!(!agents.log(node).contains("loaded the tables"), "{}", agents.log(node));
    }

    // The way back, in the opposite order.
    frontend.set_policy("Cluster").await;
    frontend.ignore(false).await;
    wait_for_kube_proxy(&web.lab, &NODES, &web.cluster_ip, true).await;
    traffic.expect_no_failure().await;

    // A table that somebody deletes comes back.
    let deleted = Instant::now();
    let node = Place::Node(ELSEWHERE[0].to_owned());
    let delete = ["nft", "delete", "table", "ip", TABLE];
    assert!(web.lab.exec(&node, &delete).await.unwrap().success);
    until("the table is repaired", async || {
        let list = ["nft", "list", "map", "ip", TABLE, "cluster-ips"];
        web.lab.exec(&node, &list).await.unwrap().stdout.contains(&web.cluster_ip)
    })
    .await;
    println!("the table was repaired within {:?}", deleted.elapsed());
    assert!(deleted.elapsed() < REPAIRED);

    // A Service with the label alone is not served: no object owns it.
    web.lab.kubectl(["-n", "web", "create", "service", "clusterip", "stranger", "--tcp=80"]).await.unwrap();
    let claim = format!(r#"{{"spec": {{"externalIPs": ["{EXTERNAL}"]}}}}"#);
    web.lab.kubectl(["-n", "web", "patch", "service", "stranger", "-p", &claim]).await.unwrap();
    let joins = ["-n", "web", "label", "service", "stranger", "sourcepreserve.io/preserve=web"];
    web.lab.kubectl(joins).await.unwrap();
    let get = ["-n", "web", "get", "service", "stranger", "-o=jsonpath={.spec.clusterIP}"];
    let stranger = web.lab.kubectl(get).await.unwrap().stdout;
    // An agent that starts now decides about it as well.
    agents.kill(NODES[0]);
    agents.start_and_wait(NODES[0]).await;
    for node in NODES {
        let list = ["nft", "list", "map", "ip", TABLE, "cluster-ips"];
        let map = web.lab.exec(&Place::Node(node.to_owned()), &list).await.unwrap().stdout;
        assert!(map.contains(&web.cluster_ip) && !map.contains(&stranger), "{node}: {map}");
    }

    // The rules of an agent that was killed stay, and `cleanup` deletes them. The table of another
    // agent stays.
    let other = ["nft", "add", "table", "ip", "another-agent"];
    for node in ELSEWHERE {
        assert!(web.lab.exec(&Place::Node(node.to_owned()), &other).await.unwrap().success);
    }
    agents.kill(ELSEWHERE[1]);
    assert!(has_table(&web.lab, ELSEWHERE[1]).await);
    let cleanup = [env!("CARGO_BIN_EXE_proxy-agent"), "cleanup"];
    let place = Place::Node(ELSEWHERE[1].to_owned());
    for _ in 0..2 {
        let done = web.lab.exec(&place, &cleanup).await.unwrap();
        assert!(done.success, "{}", done.stderr);
        assert!(!has_table(&web.lab, ELSEWHERE[1]).await);
    }
    agents.start(ELSEWHERE[1]).await;
    until("the agent wrote its table again", async || has_table(&web.lab, ELSEWHERE[1]).await).await;
    for node in ELSEWHERE {
        let tables = web.lab.exec(&Place::Node(node.to_owned()), &["nft", "list", "tables"]).await.unwrap();
        assert!(tables.stdout.contains("another-agent"), "{node}");
    }

    // Without a Service to serve, there is no table.
    frontend.preserve(false).await;
    for node in NODES {
        until(&format!("the table of {node} is gone"), async || !has_table(&web.lab, node).await).await;
    }
    assert_eq!(KubeProxyState::look(&web.lab).await.unwrap(), kube_proxy);
}
