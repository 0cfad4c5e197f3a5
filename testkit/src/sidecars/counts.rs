//! The counts of pods in the status of an object.

use isp_api::IngressSourcePreserve;
use isp_api::preserve::SidecarStatus;
use isp_lab::Lab;
use kube::Api;

use crate::wait::until;

/// How many pods the entries of an object select, and how many of those are as they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Pods that an entry selects.
    pub matching: u32,
    /// Pods that are as a new pod would be.
    pub consistent: u32,
}

impl Counts {
    /// Waits until the status of an object has these counts, and counts all other pods as stale.
    pub async fn expect(self, what: &str, lab: &Lab, object: &str) {
        let objects: Api<IngressSourcePreserve> = Api::all(lab.client());
        until(what, async || {
            let status = objects.get(object).await.unwrap().status.and_then(|status| status.sidecars);
            match &status {
                Some(found) if self.is(found) => Ok(()),
                _ => Err(format!("{status:?}, not {self:?}")),
            }
        })
        .await;
    }

    fn is(self, found: &SidecarStatus) -> bool {
        let Self { matching, consistent } = self;
        (found.matching, found.consistent, found.stale) == (matching, consistent, matching - consistent)
    }
}
