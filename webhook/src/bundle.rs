//! Keeps the `caBundle` of the ValidatingWebhookConfiguration current, so that API servers trust
//! the serving certificates of the replicas.
//!
//! It writes only that field, by server-side apply; the rest of the configuration belongs to its
//! owner. It never creates the configuration: every apply names the UID of an existing object. A
//! recreated configuration is written again at once.
//!
//! The operator owns the MutatingWebhookConfiguration for pods. It creates that object only once
//! there is a bundle here, and copies the bundle into it, so a change reaches both.
//!
//! All replicas run this concurrently and may briefly disagree; see [`surplus`].

mod surplus;

use std::sync::Arc;
use std::time::Duration;

use isp_api::names::{OBJECT_WEBHOOK, OBJECT_WEBHOOK_CONFIGURATION, WEBHOOK_FIELD_MANAGER};
use isp_client::plain;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::jiff::Timestamp;
use k8s_openapi::{ByteString, Resource};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use self::surplus::Surplus;
use crate::certs::Trust;
use crate::metrics::{Metrics, WriteOutcome};
use crate::named_object::{Known, NamedObject};

const TIMEOUT: Duration = Duration::from_secs(10);
/// Minimum time between two writes, since another writer may insist on its own bundle.
const REST: Duration = Duration::from_secs(1);
/// Wait time if nothing else is due.
const LOOK: Duration = Duration::from_secs(30);

pub(crate) struct BundleKeeper {
    api: Api<ValidatingWebhookConfiguration>,
    found: NamedObject<ValidatingWebhookConfiguration>,
    trust: watch::Receiver<Trust>,
    surplus: Surplus,
    metrics: Arc<Metrics>,
    failing: bool,
}

impl BundleKeeper {
    pub(crate) fn new(
        client: Client,
        trust: watch::Receiver<Trust>,
        overlap: Duration,
        metrics: Arc<Metrics>,
    ) -> Self {
        let api: Api<ValidatingWebhookConfiguration> = Api::all(client);
        let found = NamedObject::new(api.clone(), OBJECT_WEBHOOK_CONFIGURATION);
        Self { api, found, trust, surplus: Surplus::new(overlap), metrics, failing: false }
    }

    /// Never returns.
    pub(crate) async fn run(mut self) {
        loop {
            let wait = self.look().await;
            tokio::select! {
                biased;
                () = self.found.changed() => {}
                Ok(()) = self.trust.changed() => {}
                () = sleep(wait) => {}
            }
        }
    }

    /// Writes the bundle if it is wrong. Returns how long to wait for a change.
    async fn look(&mut self) -> Duration {
        let needed = self.trust.borrow_and_update().clone();
        let Known::Present(found) = self.found.known() else { return LOOK };
        let (Some(present), Some(uid)) = (bundle(found), found.uid()) else {
            debug!(webhook = OBJECT_WEBHOOK, "the configuration has no such webhook");
            return LOOK;
        };
        let present = Trust::read(present);
        let now = Timestamp::now();
        let Some(bundle) = self.surplus.bundle(now, &needed, &present) else {
            return self.surplus.due(now).unwrap_or(LOOK).min(LOOK);
        };
        self.write(&uid, &bundle).await;
        sleep(REST).await;
        Duration::ZERO
    }

    async fn write(&mut self, uid: &str, bundle: &Trust) {
        let apply = json!({
            "apiVersion": ValidatingWebhookConfiguration::API_VERSION,
            "kind": ValidatingWebhookConfiguration::KIND,
            // The UID makes the apply fail for any other object of this name.
            "metadata": {"name": OBJECT_WEBHOOK_CONFIGURATION, "uid": uid},
            "webhooks": [{
                "name": OBJECT_WEBHOOK,
                "clientConfig": {"caBundle": ByteString(bundle.pem().into_bytes())},
            }],
        });
        let parameters = PatchParams::apply(WEBHOOK_FIELD_MANAGER).force();
        let patch = Patch::Apply(&apply);
        let written = self.api.patch(OBJECT_WEBHOOK_CONFIGURATION, &parameters, &patch);
        let error = match timeout(TIMEOUT, written).await {
            Ok(Ok(answer)) => {
                info!(certificates = bundle.iter().count(), "wrote the caBundle");
                self.metrics.ca_bundle_written(WriteOutcome::Done);
                self.found.take_answer(Some(answer));
                self.failing = false;
                return;
            }
            Ok(Err(error)) => plain(&error),
            Err(_) => format!("no answer within {TIMEOUT:?}"),
        };
        self.metrics.ca_bundle_written(WriteOutcome::Failed);
        if std::mem::replace(&mut self.failing, true) {
            debug!(error, "still cannot write the caBundle");
        } else {
            warn!(error, "cannot write the caBundle; retrying");
        }
    }
}

/// The bundle in the configuration, empty if not set. None if the configuration lacks the webhook.
fn bundle(configuration: &ValidatingWebhookConfiguration) -> Option<&[u8]> {
    let webhook = configuration.webhooks.iter().flatten().find(|webhook| webhook.name == OBJECT_WEBHOOK)?;
    Some(webhook.client_config.ca_bundle.as_ref().map_or(&[], |bundle| &bundle.0))
}
