//! MutatingAdmissionPolicies and their bindings, if the API server serves them.

use std::time::Duration;

use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use isp_client::plain;
use isp_plan::build::pod_policy::API_VERSION;
use isp_plan::own::OwnKind;
use kube::Client;
use tracing::{debug, info, warn};

use super::watch_own;
use crate::index::{AdmissionUpdate, Update};

/// Interval for checking again whether the API server serves them, as it does after an upgrade.
const SOME_DAY: Duration = Duration::from_hours(1);
const AGAIN: Duration = Duration::from_secs(5);

/// Yields whether the API server serves policies. Once it does, watches policies and bindings.
pub(super) fn watch(client: Client) -> BoxStream<'static, Update> {
    let asked = stream::unfold(Asked::NotYet, {
        let client = client.clone();
        move |before| ask(client.clone(), before)
    });
    asked
        .flat_map(move |served| {
            let told = AdmissionUpdate::PoliciesServed(served);
            let told = stream::once(async { Update::Admission(Box::new(told)) }).boxed();
            if !served {
                return told;
            }
            let follow = |kind| watch_own(&client, kind, None);
            told.chain(stream::select(follow(OwnKind::PodPolicy), follow(OwnKind::PodPolicyBinding))).boxed()
        })
        .boxed()
}

enum Asked {
    NotYet,
    NotServed,
}

async fn ask(client: Client, before: Asked) -> Option<(bool, Asked)> {
    let mut wait = match before {
        Asked::NotYet => Duration::ZERO,
        Asked::NotServed => SOME_DAY,
    };
    let mut failing = false;
    loop {
        tokio::time::sleep(wait).await;
        match client.list_api_group_resources(API_VERSION).await {
            Ok(list) => {
                let served =
                    list.resources.iter().any(|resource| resource.name == "mutatingadmissionpolicies");
                match (served, &before) {
                    (false, Asked::NotServed) => {}
                    (false, Asked::NotYet) => return Some((false, Asked::NotServed)),
                    (true, _) => {
                        info!("this API server has MutatingAdmissionPolicies");
                        return Some((true, Asked::NotServed));
                    }
                }
                failing = false;
                wait = SOME_DAY;
            }
            Err(error) => {
                let error = plain(&error);
                if std::mem::replace(&mut failing, true) {
                    debug!(error, "still cannot tell whether the API server has MutatingAdmissionPolicies");
                } else {
                    warn!(
                        error,
                        "cannot tell whether the API server has MutatingAdmissionPolicies; retrying"
                    );
                }
                wait = AGAIN;
            }
        }
    }
}
