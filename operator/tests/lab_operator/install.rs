//! Installing, upgrading and uninstalling, as docs/install.md says, with images as they are released.

use std::path::Path;
use std::time::Instant;

use isp_lab::release;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;

use super::harness::{Scenario, eventually, path, sample};
use super::helm::{chart, helm};
use super::inventory::Inventory;
use super::snapshot::Snapshot;
use super::traffic::Traffic;
use super::{SYSTEM, addresses, wait_until_ready};

/// The version that the chart and the overlay install.
const FIRST: &str = env!("CARGO_PKG_VERSION");
/// Another one: the same programs under another tag.
const SECOND: &str = "999.0.0";
const PROGRAMS: [&str; 3] = ["operator", "webhook", "proxy-agent"];

#[tokio::test]
async fn a_release_is_upgraded_without_a_failed_request_and_leaves_nothing_behind() {
    let scenario = Scenario::up("install").await;
    let lab = &scenario.lab;
    load_images(&scenario).await;
    let (everything, before) = (Inventory::take(lab).await, Snapshot::take(lab).await);
    println!("{} objects before", everything.count());

    by_helm(&scenario, &["install", "--create-namespace"]).await;
    // From here on only restricted pods are admitted, those of the upgrade.
    let levels = ["enforce", "warn"].map(|what| format!("pod-security.kubernetes.io/{what}=restricted"));
    lab.kubectl(["label", "namespace", SYSTEM, &levels[0], &levels[1]]).await.unwrap();
    lab.kubectl(["apply", "-f", &sample()]).await.unwrap();
    wait_until_ready(&scenario).await;
    expect_version(&scenario, FIRST).await;
    addresses::arrive(&scenario).await;
    // The comparison in the end sees what comes.
    let now = Inventory::take(lab).await;
    assert!(now.count() > everything.count() + 30, "{} objects now", now.count());

    upgrade_under_traffic(&scenario).await;

    uninstall_by_helm(&scenario, &before).await;
    everything.expect_again(lab).await;

    by_kustomize_and_back(&scenario, &before).await;
    everything.expect_again(lab).await;
}

async fn upgrade_under_traffic(scenario: &Scenario) {
    let traffic = Traffic::start(scenario).await;
    let began = Instant::now();
    by_helm(scenario, &["upgrade", "--set", &format!("image.tag={SECOND}")]).await;
    expect_version(scenario, SECOND).await;
    wait_until_ready(scenario).await;
    println!("upgraded after {:.1} s", began.elapsed().as_secs_f64());
    addresses::arrive(scenario).await;
    traffic.expect_no_failure().await;
}

async fn uninstall_by_helm(scenario: &Scenario, before: &Snapshot) {
    let lab = &scenario.lab;
    lab.kubectl(["delete", "isp", "--all", "--timeout=120s"]).await.unwrap();
    before.expect_again(lab).await;
    addresses::are_lost(scenario).await;
    helm(&lab.kubeconfig(), &["uninstall", "sourcepreserve", "--namespace", SYSTEM, "--wait"]).unwrap();
    let definitions = ["ingresssourcepreserves.sourcepreserve.io", "ingresssourcenodes.sourcepreserve.io"];
    lab.kubectl(["delete", "crd", definitions[0], definitions[1]]).await.unwrap();
    lab.kubectl(["delete", "namespace", SYSTEM]).await.unwrap();
}

async fn load_images(scenario: &Scenario) {
    for program in PROGRAMS {
        let program = Path::new(env!("CARGO_BIN_EXE_operator")).with_file_name(program);
        for tag in [FIRST, SECOND] {
            let archive = release::pack(&program, tag).unwrap();
            scenario.lab.load_image(&archive).await.unwrap();
        }
    }
}

/// Runs helm on the chart and waits until everything that it installs runs.
async fn by_helm(scenario: &Scenario, command: &[&str]) {
    let chart = chart();
    let (verb, options) = command.split_first().unwrap();
    let mut arguments =
        vec![*verb, "sourcepreserve", &chart, "--namespace", SYSTEM, "--wait", "--timeout=3m"];
    arguments.extend(options);
    let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
    let kubeconfig = scenario.lab.kubeconfig();
    let run = move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        helm(&kubeconfig, &arguments)
    };
    tokio::task::spawn_blocking(run).await.unwrap().unwrap();
}

/// The same, installed and uninstalled the other way.
async fn by_kustomize_and_back(scenario: &Scenario, before: &Snapshot) {
    let lab = &scenario.lab;
    let overlay = path("manifests/overlays/default");
    lab.kubectl(["apply", "--server-side", "-k", &overlay]).await.unwrap();
    for deployment in ["deployment/sourcepreserve-operator", "deployment/sourcepreserve-webhook"] {
        lab.kubectl(["-n", SYSTEM, "rollout", "status", deployment, "--timeout=120s"]).await.unwrap();
    }
    lab.kubectl(["apply", "-f", &sample()]).await.unwrap();
    wait_until_ready(scenario).await;
    expect_version(scenario, FIRST).await;
    lab.kubectl(["delete", "isp", "--all", "--timeout=120s"]).await.unwrap();
    before.expect_again(lab).await;
    lab.kubectl(["delete", "-k", &overlay]).await.unwrap();
}

/// Every pod of the project's runs this version, and no other pod of it is left; the agents' DaemonSet has been followed everywhere.
async fn expect_version(scenario: &Scenario, version: &str) {
    let pods: Api<Pod> = Api::all(scenario.lab.client());
    let sets: Api<DaemonSet> = Api::namespaced(scenario.lab.client(), "kube-system");
    let expected = PROGRAMS.map(|program| format!("{}/{program}:{version}", release::REGISTRY));
    eventually(&format!("all pods are of {version}"), async || {
        let images: Vec<String> =
            pods.list(&ListParams::default()).await.unwrap().iter().flat_map(own_images).collect();
        let set = sets.get("proxy-agent-default").await.unwrap();
        let status = set.status.unwrap_or_default();
        // Two replicas each, and an agent on each of the two nodes elsewhere.
        images.len() == 6
            && images.iter().all(|image| expected.contains(image))
            && status.observed_generation == set.metadata.generation
            && status.updated_number_scheduled == Some(2)
            && status.number_available == Some(2)
    })
    .await;
}

/// The images of a pod that are the project's.
fn own_images(pod: &Pod) -> Vec<String> {
    let spec = pod.spec.iter();
    let containers =
        spec.flat_map(|spec| spec.containers.iter().chain(spec.init_containers.iter().flatten()));
    let images = containers.filter_map(|container| container.image.clone());
    images.filter(|image| image.starts_with(release::REGISTRY)).collect()
}
