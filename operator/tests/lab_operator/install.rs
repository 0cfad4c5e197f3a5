//! Installing, upgrading and uninstalling with the exact commands of docs/install.md, and with
//! release images.

use std::path::Path;
use std::time::Instant;

use isp_lab::docs::{self, Block, Terminal};
use isp_lab::{provision, release};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;

use super::harness::{Scenario, eventually, sample};
use super::inventory::Inventory;
use super::snapshot::Snapshot;
use super::traffic::{STEADY, Traffic};
use super::{addresses, wait_until_ready};

/// The version that the chart and the overlay install.
const FIRST: &str = env!("CARGO_PKG_VERSION");
/// Another version: the same programs under another tag.
const SECOND: &str = "999.0.0";
const PROGRAMS: [&str; 3] = ["operator", "webhook", "proxy-agent"];

#[tokio::test]
async fn a_release_is_upgraded_without_a_failed_request_and_leaves_nothing_behind() {
    const TEST: &str = "a_release_is_upgraded_without_a_failed_request_and_leaves_nothing_behind";
    let [by_kustomize, by_helm, label, upgrade, delete_objects, not_by_helm, not_by_kustomize] =
        docs::commands("docs/install.md", TEST).unwrap();
    let [of_chart] = docs::commands("manifests/chart/README.md", TEST).unwrap();
    assert_eq!(of_chart.commands(), by_helm.commands(), "once is enough");
    let scenario = Scenario::up("install").await;
    let terminal = open_terminal(&scenario).await;
    let run = async |block: &Block| drop(terminal.run(block).await.unwrap_or_else(|error| panic!("{error}")));
    let lab = &scenario.lab;
    load_images(&scenario).await;
    let (everything, before) = (Inventory::take(lab).await, Snapshot::take(lab).await);
    println!("{} objects before", everything.count());

    run(&by_helm).await;
    // From here on only restricted pods are admitted, including those of the upgrade.
    run(&label).await;
    lab.kubectl(["apply", "-f", &sample()]).await.unwrap();
    wait_until_ready(&scenario).await;
    expect_version(&scenario, FIRST).await;
    addresses::arrive(&scenario).await;
    // Shows that the comparison at the end would notice leftovers.
    let now = Inventory::take(lab).await;
    assert!(now.count() > everything.count() + 30, "{} objects now", now.count());

    // Set explicitly here; the chart of another version has it as its default.
    upgrade_under_traffic(&scenario, run(&upgrade.with(&format!("--set image.tag={SECOND}")))).await;

    run(&delete_objects).await;
    before.expect_again(lab).await;
    addresses::are_lost(&scenario).await;
    run(&not_by_helm).await;
    everything.expect_again(lab).await;

    // The same with kustomize.
    run(&by_kustomize).await;
    lab.kubectl(["apply", "-f", &sample()]).await.unwrap();
    wait_until_ready(&scenario).await;
    expect_version(&scenario, FIRST).await;
    run(&delete_objects).await;
    before.expect_again(lab).await;
    run(&not_by_kustomize).await;
    everything.expect_again(lab).await;
}

async fn open_terminal(scenario: &Scenario) -> Terminal {
    let helm = tokio::task::spawn_blocking(|| provision::helm(|line| eprintln!("{line}")));
    let programs = [scenario.lab.program("kubectl").unwrap(), helm.await.unwrap().unwrap()];
    Terminal::open(&scenario.lab.kubeconfig(), &[&programs[0], &programs[1]]).unwrap()
}

async fn upgrade_under_traffic(scenario: &Scenario, upgrade: impl Future<Output = ()>) {
    let traffic = Traffic::start(scenario, STEADY).await;
    let began = Instant::now();
    upgrade.await;
    expect_version(scenario, SECOND).await;
    wait_until_ready(scenario).await;
    println!("upgraded after {:.1} s", began.elapsed().as_secs_f64());
    addresses::arrive(scenario).await;
    traffic.expect_no_failure().await;
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

/// Every pod of the project runs this version, and the rollout of the agents' DaemonSet is
/// complete.
async fn expect_version(scenario: &Scenario, version: &str) {
    let pods: Api<Pod> = Api::all(scenario.lab.client());
    let sets: Api<DaemonSet> = Api::namespaced(scenario.lab.client(), "kube-system");
    let expected = PROGRAMS.map(|program| format!("{}/{program}:{version}", release::REGISTRY));
    eventually(&format!("all pods are of {version}"), async || {
        let images: Vec<String> =
            pods.list(&ListParams::default()).await.unwrap().iter().flat_map(own_images).collect();
        // One revision, and no DaemonSet that pulls images.
        let own = ListParams::default().labels("sourcepreserve.io/agent-pool=default");
        let sets = sets.list(&own).await.unwrap();
        let [set] = sets.items.as_slice() else { return false };
        let status = set.status.clone().unwrap_or_default();
        // Two replicas each, and an agent on each of the two non-ingress nodes.
        images.len() == 6
            && images.iter().all(|image| expected.contains(image))
            && status.number_available == Some(2)
    })
    .await;
}

/// The project's images in a pod.
fn own_images(pod: &Pod) -> Vec<String> {
    let spec = pod.spec.iter();
    let containers =
        spec.flat_map(|spec| spec.containers.iter().chain(spec.init_containers.iter().flatten()));
    let images = containers.filter_map(|container| container.image.clone());
    images.filter(|image| image.starts_with(release::REGISTRY)).collect()
}
