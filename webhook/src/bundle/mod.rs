//! Keeps the `caBundle` of the webhook's configurations current, so that API servers trust the certificates that replicas serve with.
//!
//! Only that field is written, by server-side apply; everything else in a configuration is its owner's. A configuration that is not there
//! is not made: the operator makes and deletes the one for pods, and every apply names the object that it is meant for. One that is made
//! again is written again at once.
//!
//! All replicas do this side by side, and need not agree at every moment: see [`surplus`].

mod configuration;
mod surplus;

use std::sync::Arc;
use std::time::Duration;

use isp_api::names::WEBHOOK_FIELD_MANAGER;
use k8s_openapi::ByteString;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

pub(crate) use self::configuration::Configuration;
use self::surplus::Surplus;
use crate::certs::Trust;
use crate::error::plain;
use crate::metrics::{Metrics, WriteOutcome};
use crate::watch::{Known, One};

const TIMEOUT: Duration = Duration::from_secs(10);
/// After a write, whatever came of it: somebody else may insist on a bundle of his own.
const REST: Duration = Duration::from_secs(1);
/// When there is nothing to wait for.
const LOOK: Duration = Duration::from_secs(30);

/// Keeps one configuration.
pub(crate) struct BundleKeeper<K> {
    api: Api<K>,
    found: One<K>,
    trust: watch::Receiver<Trust>,
    surplus: Surplus,
    metrics: Arc<Metrics>,
    failing: bool,
}

impl<K: Configuration> BundleKeeper<K> {
    pub(crate) fn new(
        client: Client,
        trust: watch::Receiver<Trust>,
        overlap: Duration,
        metrics: Arc<Metrics>,
    ) -> Self {
        let api: Api<K> = Api::all(client);
        let found = One::new(api.clone(), K::NAME);
        Self { api, found, trust, surplus: Surplus::new(overlap), metrics, failing: false }
    }

    /// Never ends.
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

    /// Writes the bundle if it is not as it should be. How long to wait for news.
    async fn look(&mut self) -> Duration {
        let needed = self.trust.borrow_and_update().clone();
        let Known::There(found) = self.found.known() else { return LOOK };
        let (Some(present), Some(uid)) = (found.bundle(), found.uid()) else {
            debug!(configuration = K::NAME, webhook = K::WEBHOOK, "the configuration has no such webhook");
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
            "apiVersion": K::api_version(&()),
            "kind": K::kind(&()),
            // With this it can only be the object that was seen.
            "metadata": {"name": K::NAME, "uid": uid},
            "webhooks": [{
                "name": K::WEBHOOK,
                "clientConfig": {"caBundle": ByteString(bundle.pem().into_bytes())},
            }],
        });
        let parameters = PatchParams::apply(WEBHOOK_FIELD_MANAGER).force();
        let patch = Patch::Apply(&apply);
        let error = match timeout(TIMEOUT, self.api.patch(K::NAME, &parameters, &patch)).await {
            Ok(Ok(answer)) => {
                info!(configuration = K::NAME, certificates = bundle.iter().count(), "wrote the caBundle");
                self.metrics.ca_bundle_written(K::NAME, WriteOutcome::Done);
                self.found.take_answer(Some(answer));
                self.failing = false;
                return;
            }
            Ok(Err(error)) => plain(&error),
            Err(_) => format!("no answer within {TIMEOUT:?}"),
        };
        self.metrics.ca_bundle_written(K::NAME, WriteOutcome::Failed);
        if std::mem::replace(&mut self.failing, true) {
            debug!(configuration = K::NAME, error, "the caBundle still cannot be written");
        } else {
            warn!(configuration = K::NAME, error, "the caBundle cannot be written; it is tried again");
        }
    }
}
