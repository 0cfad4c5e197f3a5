//! Which release the pods of the project run.

use isp_testkit::release::Release;
use isp_testkit::until;
use isp_testkit::web_lab::WebLab;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;

/// Two replicas each of operator and webhook.
const REPLICAS: usize = 2;

/// Waits until all pods of the project are ready and have the images of a release.
pub(crate) async fn are_of(web: &WebLab, release: &Release, agents: usize) {
    let pods: Api<Pod> = Api::all(web.lab.client());
    let programs = [("operator", REPLICAS), ("webhook", REPLICAS), ("proxy-agent", agents)];
    until("all pods are of the release", async || {
        let all = pods.list(&ListParams::default()).await.unwrap().items;
        let ours: Vec<(String, bool)> = all.iter().filter_map(described).collect();
        let as_wanted = programs.iter().all(|(program, wanted)| {
            let of_release = (release.image(program), true);
            ours.iter().filter(|pod| **pod == of_release).count() == *wanted
        });
        let expected: usize = programs.iter().map(|(_, wanted)| wanted).sum();
        if as_wanted && ours.len() == expected { Ok(()) } else { Err(ours) }
    })
    .await;
}

/// The image of a pod of the project, and whether it is ready.
fn described(pod: &Pod) -> Option<(String, bool)> {
    let spec = pod.spec.as_ref()?;
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let mut images = containers.filter_map(|container| container.image.clone());
    let names = ["operator", "webhook", "proxy-agent"];
    let is_ours = |image: &String| names.iter().any(|name| image.contains(&format!("/{name}:")));
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.into_iter().flatten().any(|condition| {
        condition.type_ == "Ready" && condition.status == "True" && pod.metadata.deletion_timestamp.is_none()
    });
    Some((images.find(is_ours)?, ready))
}
