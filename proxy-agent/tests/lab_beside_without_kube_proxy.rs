//! Mode Beside on nodes where kube-proxy is a process, as in k3s, and on an ingress node without
//! kube-proxy: the preserved Services need nothing of it.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use isp_lab::topology::{KubeProxy, KubeProxyOn};
use isp_lab::{Answer, ECHO_IMAGE, Lab, Place, Protocol};
use isp_testkit::beside::{Agents, Steps, create_object, wait_for_kube_proxy};
use isp_testkit::traffic::{STEADY, Traffic};
use isp_testkit::web_lab::{CLIENT, EDGE, ELSEWHERE, EXTERNAL, NODE_PORT, UNROUTED, WebLab, pod_on};
use isp_testkit::{answers, preserve};
use serde_json::json;

/// The ClusterIP of the API server's Service.
const KUBERNETES: &str = "10.96.0.1:443";

#[tokio::test]
async fn the_preserved_service_needs_no_kube_proxy_on_the_ingress_node_and_no_daemon_set_elsewhere() {
    let kube_proxy = [
        KubeProxyOn(EDGE.to_owned(), KubeProxy::None),
        KubeProxyOn(ELSEWHERE[0].to_owned(), KubeProxy::Process),
        KubeProxyOn(ELSEWHERE[1].to_owned(), KubeProxy::Process),
    ];
    let lab = Lab::builder().name("beside-alone").kube_proxy(kube_proxy);
    let web = WebLab::up_as(env!("CARGO_BIN_EXE_proxy-agent"), lab).await;
    let lab = &web.lab;
    preserve::install(lab).await;
    let sets = ["-n", "kube-system", "get", "daemonsets", "-o", "name"];
    assert_eq!(lab.kubectl(sets).await.unwrap().stdout, "", "there is no DaemonSet for kube-proxy");
    start_client_pod_on_the_edge(lab).await;
    let edge_host = Place::Node(EDGE.to_owned());
    let cluster_ip = format!("{}:80", web.cluster_ip);

    // Nobody serves on the ingress node.
    let before = lab.ask(&edge_host, Protocol::Http, &cluster_ip).await.unwrap();
    assert!(matches!(before, Answer::Silent(_)), "{before:?}");

    let frontend = Steps { lab, namespace: "web", service: "frontend" };
    create_object(lab, &[("web", "frontend")]).await;
    frontend.preserve(true).await;
    let mut agents = Agents::new(lab, env!("CARGO_BIN_EXE_proxy-agent"), web.logs());
    for node in [EDGE, ELSEWHERE[0], ELSEWHERE[1]] {
        agents.start(node).await;
    }
    agents.wait_until_served(&["web/frontend"]).await;
    frontend.ignore(true).await;
    wait_for_kube_proxy(lab, &ELSEWHERE, &web.cluster_ip, false).await;
    frontend.set_policy("Local").await;

    let traffic = Traffic::start(&web, STEADY).await;
    let external = format!("{EXTERNAL}:80");
    let node_port = format!("{}:{NODE_PORT}", web.node_address(EDGE));
    let edge = web.node_address(EDGE);
    let pod = lab.exec(&pod_on(EDGE), &["hostname", "-I"]).await.unwrap().stdout;
    let pod = pod.split_whitespace().next().unwrap().parse().unwrap();
    let kept = [
        (Place::Client, &external, CLIENT),
        (Place::Client, &node_port, CLIENT),
        (pod_on(EDGE), &cluster_ip, pod),
        (pod_on(EDGE), &external, pod),
    ];
    for (place, target, source) in &kept {
        let is_kept = |answer: &Answer| answer.peer() == Some(*source);
        answers::until(lab, &format!("source {source}"), place, (Protocol::Http, target), is_kept).await;
    }
    let from_host = lab.ask(&edge_host, Protocol::Http, &cluster_ip).await.unwrap();
    assert!(matches!(from_host, Answer::Seen(_)), "from {edge}: {from_host:?}");
    // Other Services are nobody's on the ingress node, and kube-proxy's elsewhere.
    let (outside, elsewhere) = (&edge_host, Place::Node(ELSEWHERE[0].to_owned()));
    for (place, answers) in [(outside, false), (&elsewhere, true)] {
        let kubernetes = format!("https://{KUBERNETES}/readyz");
        let connected = lab.curl(place, &["--insecure", "--max-time", "2", &kubernetes]).await.unwrap();
        assert_eq!(connected.success, answers, "{place}: {connected:?}");
    }
    // Non-ingress nodes do not intercept the external IPs.
    let intercepted = lab.ask(&elsewhere, Protocol::Http, &format!("{UNROUTED}:80")).await.unwrap();
    assert!(matches!(intercepted, Answer::Silent(_)), "{intercepted:?}");

    // Each agent is killed and starts again.
    for node in [EDGE, ELSEWHERE[0], ELSEWHERE[1]] {
        agents.kill(node);
        agents.start_and_wait(node).await;
    }
    traffic.expect_no_failure().await;
}

async fn start_client_pod_on_the_edge(lab: &Lab) {
    let name = format!("asks-from-{EDGE}");
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": EDGE},
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "echo", "image": ECHO_IMAGE, "imagePullPolicy": "Never"}],
        },
    });
    lab.apply(&pod.to_string()).await.unwrap();
    lab.kubectl(["wait", "--for=condition=Ready", &format!("pod/{name}"), "--timeout=60s"]).await.unwrap();
}
