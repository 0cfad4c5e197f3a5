//! Installing, upgrading and uninstalling with the exact commands of docs/install.md, and with
//! release images.

use std::path::Path;
use std::time::Instant;

use isp_lab::docs::{self, Block, Terminal};
use isp_lab::{provision, release};
use isp_testkit::images::{self, PROGRAMS};
use isp_testkit::inventory::Inventory;
use isp_testkit::traffic::{STEADY, Traffic};
use isp_testkit::until;
use isp_testkit::web_lab::{WebLab, addresses, sample};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;

use super::PROGRAM;

/// The version that the chart and the overlay install.
const FIRST: &str = env!("CARGO_PKG_VERSION");
/// Another version: the same programs under another tag.
const SECOND: &str = "999.0.0";

#[tokio::test]
async fn a_release_is_upgraded_without_a_failed_request_and_leaves_nothing_behind() {
    const TEST: &str = "a_release_is_upgraded_without_a_failed_request_and_leaves_nothing_behind";
    let [by_kustomize, by_helm, label, upgrade, delete_objects, not_by_helm, not_by_kustomize] =
        docs::commands("docs/install.md", TEST).unwrap();
    let [of_chart] = docs::commands("manifests/chart/README.md", TEST).unwrap();
    assert_eq!(of_chart.commands(), by_helm.commands(), "once is enough");
    let scenario = WebLab::up("install", PROGRAM).await;
    let terminal = open_terminal(&scenario).await;
    let run = async |block: &Block| drop(terminal.run(block).await.unwrap_or_else(|error| panic!("{error}")));
    let lab = &scenario.lab;
    images::load(lab, Path::new(PROGRAM), &[FIRST, SECOND]).await;
    let (everything, before) = (Inventory::take(lab).await, scenario.snapshot().await);
    println!("{} objects before", everything.count());

    run(&by_helm).await;
    // From here on only restricted pods are admitted, including those of the upgrade.
    run(&label).await;
    lab.kubectl(["apply", "-f", &sample()]).await.unwrap();
    scenario.wait_until_ready().await;
    expect_version(&scenario, FIRST).await;
    addresses::arrive(&scenario).await;
    // Shows that the comparison at the end would notice leftovers.
    let now = Inventory::take(lab).await;
    assert!(now.count() > everything.count() + 30, "{} objects now", now.count());

    // Set explicitly here; the chart of another version has it as its default.
    upgrade_under_traffic(&scenario, run(&upgrade.with(&format!("--set image.tag={SECOND}")))).await;

    run(&delete_objects).await;
    scenario.expect_restored(&before).await;
    addresses::are_lost(&scenario).await;
    run(&not_by_helm).await;
    everything.expect_again(lab).await;

    // The same with kustomize.
    run(&by_kustomize).await;
    lab.kubectl(["apply", "-f", &sample()]).await.unwrap();
    scenario.wait_until_ready().await;
    expect_version(&scenario, FIRST).await;
    run(&delete_objects).await;
    scenario.expect_restored(&before).await;
    run(&not_by_kustomize).await;
    everything.expect_again(lab).await;
}

async fn open_terminal(scenario: &WebLab) -> Terminal {
    let helm = tokio::task::spawn_blocking(|| provision::helm(|line| eprintln!("{line}")));
    let programs = [scenario.lab.program("kubectl").unwrap(), helm.await.unwrap().unwrap()];
    Terminal::open(&scenario.lab.kubeconfig(), &[&programs[0], &programs[1]]).unwrap()
}

async fn upgrade_under_traffic(scenario: &WebLab, upgrade: impl Future<Output = ()>) {
    let traffic = Traffic::start(scenario, STEADY).await;
    let began = Instant::now();
    upgrade.await;
    expect_version(scenario, SECOND).await;
    scenario.wait_until_ready().await;
    println!("upgraded after {:.1} s", began.elapsed().as_secs_f64());
    addresses::arrive(scenario).await;
    traffic.expect_no_failure().await;
}

/// Every pod of the project runs this version, and the rollout of the agents' DaemonSet is
/// complete.
async fn expect_version(scenario: &WebLab, version: &str) {
    let pods: Api<Pod> = Api::all(scenario.lab.client());
    let sets: Api<DaemonSet> = Api::namespaced(scenario.lab.client(), "kube-system");
    let expected = PROGRAMS.map(|program| format!("{}/{program}:{version}", release::REGISTRY));
    until(&format!("all pods are of {version}"), async || {
        let images: Vec<String> =
            pods.list(&ListParams::default()).await.unwrap().iter().flat_map(own_images).collect();
        // One revision, and no DaemonSet that pulls images.
        let own = ListParams::default().labels("sourcepreserve.io/agent-pool=default");
        let sets = sets.list(&own).await.unwrap();
        let [set] = sets.items.as_slice() else { return Err(format!("{} DaemonSets", sets.items.len())) };
        let status = set.status.clone().unwrap_or_default();
        // Two replicas each, and an agent on each of the two non-ingress nodes.
        let all = images.len() == 6
            && images.iter().all(|image| expected.contains(image))
            && status.number_available == Some(2);
        if all { Ok(()) } else { Err(format!("{images:?}, {status:?}")) }
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
