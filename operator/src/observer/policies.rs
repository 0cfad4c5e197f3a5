//! MutatingAdmissionPolicies and their bindings, where the API server has them.

use std::time::Duration;

use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use isp_api::names::{NAME_LABEL, OPERATOR_FIELD_MANAGER};
use isp_api::sidecar::policy::API_VERSION;
use isp_client::{events, plain};
use kube::{Api, Client};
use tracing::{debug, info, warn};

use super::config;
use crate::index::{AdmissionUpdate, Update};

/// When to ask again: an API server without them is upgraded some day.
const SOME_DAY: Duration = Duration::from_hours(1);
const AGAIN: Duration = Duration::from_secs(5);

/// Says whether there are policies; from when there are, tells of those that carry our label.
pub(super) fn watch(client: Client) -> BoxStream<'static, Update> {
    let asked = stream::unfold(Asked::NotYet, {
        let client = client.clone();
        move |before| ask(client.clone(), before)
    });
    asked
        .flat_map(move |served| {
            let told = stream::once(async move { AdmissionUpdate::PoliciesServed(served) }).boxed();
            if !served {
                return told;
            }
            let ours = || config().labels(&format!("{NAME_LABEL}={OPERATOR_FIELD_MANAGER}"));
            let policies = events(Api::all(client.clone()), ours()).map(AdmissionUpdate::Policies);
            let bindings = events(Api::all(client.clone()), ours()).map(AdmissionUpdate::Bindings);
            told.chain(stream::select(policies, bindings)).boxed()
        })
        .map(|update| Update::Admission(Box::new(update)))
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
                    debug!(
                        error,
                        "the API server still does not say whether it has MutatingAdmissionPolicies"
                    );
                } else {
                    warn!(
                        error,
                        "the API server does not say whether it has MutatingAdmissionPolicies; it is asked again"
                    );
                }
                wait = AGAIN;
            }
        }
    }
}
