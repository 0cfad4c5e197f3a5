//! docs/install.md on a release: what somebody does who has its files and no checkout.

use isp_lab::docs::{self, Block};
use isp_testkit::until;

use super::world::World;

/// The commands of the page.
pub(crate) struct Installation {
    pub(crate) verify: Block,
    pub(crate) plugin: Block,
    pub(crate) import: Block,
    pub(crate) by_helm: Block,
    not_by_helm: Block,
}

impl Installation {
    /// All but one belong to tests of upgrades, which are on other clusters.
    pub(crate) fn read(plugin: Block) -> Self {
        const PAGE: &str = "docs/install.md";
        const OF_RELEASES: &str = "a_release_is_upgraded_and_downgraded_from_its_files_alone";
        const OF_CHECKOUTS: &str = "a_release_is_upgraded_without_a_failed_request_and_leaves_nothing_behind";
        let [verify, import, _, by_helm, _, _] = docs::commands(PAGE, OF_RELEASES).unwrap();
        let [_, _, _, _, _, not_by_helm, _] = docs::commands(PAGE, OF_CHECKOUTS).unwrap();
        Self { verify, plugin, import, by_helm, not_by_helm }
    }

    /// Uninstalls what Helm installed. Neither kinds nor objects of the project are left.
    pub(crate) async fn is_undone(&self, world: &World) {
        world.run_with_release(&self.not_by_helm).await;
        let kinds = "namespaces,crds,clusterroles,clusterrolebindings,validatingwebhookconfigurations,\
                     mutatingwebhookconfigurations,validatingadmissionpolicies";
        until("nothing is left", async || {
            let listed = world.lab.kubectl(["get", kinds, "--output=name"]).await.unwrap().stdout;
            let left: Vec<&str> = listed.lines().filter(|name| name.contains("sourcepreserve")).collect();
            if left.is_empty() { Ok(()) } else { Err(left.join(", ")) }
        })
        .await;
    }
}
