//! The two configurations: how they are called, and where a bundle is in them.

use isp_api::names::{OBJECT_WEBHOOK, OBJECT_WEBHOOK_CONFIGURATION, POD_WEBHOOK, POD_WEBHOOK_CONFIGURATION};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};

use crate::watch::Watched;

pub(crate) trait Configuration: Watched {
    /// The name of the object.
    const NAME: &'static str;
    /// The name of the webhook in it.
    const WEBHOOK: &'static str;

    /// The bundle of the webhook, empty when there is none yet; nothing without that webhook.
    fn bundle(&self) -> Option<&[u8]>;
}

fn bytes(bundle: Option<&ByteString>) -> &[u8] {
    bundle.map_or(&[], |bundle| &bundle.0)
}

impl Configuration for MutatingWebhookConfiguration {
    const NAME: &'static str = POD_WEBHOOK_CONFIGURATION;
    const WEBHOOK: &'static str = POD_WEBHOOK;

    fn bundle(&self) -> Option<&[u8]> {
        let webhook = self.webhooks.iter().flatten().find(|webhook| webhook.name == Self::WEBHOOK)?;
        Some(bytes(webhook.client_config.ca_bundle.as_ref()))
    }
}

impl Configuration for ValidatingWebhookConfiguration {
    const NAME: &'static str = OBJECT_WEBHOOK_CONFIGURATION;
    const WEBHOOK: &'static str = OBJECT_WEBHOOK;

    fn bundle(&self) -> Option<&[u8]> {
        let webhook = self.webhooks.iter().flatten().find(|webhook| webhook.name == Self::WEBHOOK)?;
        Some(bytes(webhook.client_config.ca_bundle.as_ref()))
    }
}
