//! The objects that the project changes on a cluster, for comparison before and after.

use isp_lab::Lab;
use isp_lab::istio::{GATEWAY, NAMESPACE};
use isp_testkit::snapshot::{Depth, Part, Snapshot};

pub(crate) struct Before(Snapshot);

impl Before {
    pub(crate) async fn take(lab: &Lab) -> Self {
        let parts = [
            Part::Object(format!("/api/v1/namespaces/{NAMESPACE}/services/{GATEWAY}")),
            Part::Object("/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy".to_owned()),
            Part::Each("/api/v1/nodes".to_owned()),
            Part::ReadyPods("/apis/apps/v1/namespaces/kube-system/daemonsets".to_owned()),
            Part::Names("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations".to_owned()),
        ];
        Self(Snapshot::take(&lab.client(), Depth::Declared, &parts).await)
    }

    /// Asserts that everything is as it was; controllers may still make a last change.
    pub(crate) async fn expect_again(&self, lab: &Lab) {
        self.0.expect_again(&lab.client()).await;
    }
}
