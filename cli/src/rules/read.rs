//! The helper pod of `rules`: it runs on the pod's node, prints the rules of the pod, and ends.

mod manifest;

use std::time::Duration;

use self::manifest::manifest;
use super::target::Target;
use crate::connection::Connection;
use crate::error::CommandError;
use crate::helper::access::Need;
use crate::helper::{self, Goal, Helpers, Interrupt, Kind};

const CONTAINER: &str = "read";

static KIND: Kind = Kind { name: "isp-rules", containers: &[CONTAINER], lifetime: Duration::from_mins(2) };
const NEEDS: &str = "it needs a host path and the capability SYS_ADMIN, so choose a namespace without a Pod Security level, or \
                     with level privileged, with --helper-namespace";
/// What the user's rights are for.
pub(super) const NEED: Need = Need {
    purpose: "reading the rules of a pod takes a helper pod on its node",
    way_out: "choose another namespace with --helper-namespace",
};

pub(super) fn helpers<'a>(connection: &'a Connection, namespace: &'a str) -> Helpers<'a> {
    Helpers::new(connection, namespace, &KIND, NEEDS)
}

/// Runs a helper for a pod, and returns what it prints.
pub(super) async fn read(
    helpers: &Helpers<'_>,
    target: &Target,
    image: &str,
    interrupt: &Interrupt,
) -> Result<String, CommandError> {
    interrupt.check()?;
    let name = KIND.new_name();
    let result = match helpers.create(&manifest(&KIND, &name, target, image)).await {
        Ok(_) => {
            let ended = async {
                helpers.wait(&name, &target.node, Goal::Succeeded).await?;
                helpers.log(&name).await
            };
            interrupt.or(ended).await
        }
        Err(error) => Err(error),
    };
    helper::after_deletion(result, helpers.delete(&name).await)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn a_later_run_recognizes_the_helper() {
        let target = Target {
            key: isp_plan::Key::new("shop", "cart"),
            pod: Pod::default(),
            node: "work-1".to_owned(),
            addresses: vec!["10.244.1.5".parse().unwrap()],
        };
        assert!(KIND.is_helper(&manifest(&KIND, &KIND.new_name(), &target, "image")));
    }
}
