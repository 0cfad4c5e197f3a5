//! All objects that the operator changes, before and after.

use isp_api::{IngressSourceNode, IngressSourcePreserve};
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::Api;
use kube::api::ListParams;

use super::{SERVICE, WebLab};
use crate::admission;
use crate::snapshot::{Depth, Part, Snapshot};
use crate::wait::until;

impl WebLab {
    /// The objects that the operator changes, once the cluster is at rest.
    pub async fn snapshot(&self) -> Snapshot {
        let objects = [
            SERVICE,
            "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy",
            "/api/v1/namespaces/kube-system/configmaps/kube-proxy",
        ];
        let mut parts = objects.map(|path| Part::Object(path.to_owned())).to_vec();
        parts.push(Part::Each("/api/v1/nodes".to_owned()));
        Snapshot::take_at_rest(&self.lab.client(), Depth::Everything, &parts).await
    }

    /// Asserts that everything is restored and nothing of ours is left.
    pub async fn expect_restored(&self, before: &Snapshot) {
        before.expect_again(&self.lab.client()).await;
        self.nothing_is_left().await;
    }

    async fn nothing_is_left(&self) {
        let (all, client) = (ListParams::default(), self.lab.client());
        let objects: Api<IngressSourcePreserve> = Api::all(client.clone());
        assert!(objects.list(&all).await.unwrap().items.is_empty());
        let reports: Api<IngressSourceNode> = Api::all(client.clone());
        assert!(reports.list(&all).await.unwrap().items.is_empty());
        assert_eq!(admission::names(client.clone()).await, [""; 0]);
        let sets: Api<DaemonSet> = Api::namespaced(client, "kube-system");
        let names: Vec<_> =
            sets.list(&all).await.unwrap().items.into_iter().filter_map(|set| set.metadata.name).collect();
        assert_eq!(names, ["kube-proxy"]);
        until("kube-proxy is ready everywhere", async || {
            let set = sets.get("kube-proxy").await.unwrap();
            let status = set.status.unwrap_or_default();
            let nodes = status.desired_number_scheduled;
            let ready = status.observed_generation == set.metadata.generation
                && nodes == 3
                && status.updated_number_scheduled == Some(nodes)
                && status.number_available == Some(nodes);
            if ready { Ok(()) } else { Err(status) }
        })
        .await;
    }
}
