//! What is handed out: the certificate that connections are served with, and what is to be trusted for it.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use isp_runtime::readiness::Pending;
use k8s_openapi::jiff::Timestamp;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;
use tracing::info;

use super::lifespan::Lifespan;
use super::switch::Switch;
use super::trust::Trust;
use crate::metrics::{Kind, Metrics};

/// A certificate to serve with.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub(super) key: Arc<CertifiedKey>,
    pub(super) lifespan: Lifespan,
    /// By whom it is verified.
    pub(super) signers: Trust,
}

/// The certificate of new connections. Those that are open keep theirs, so a renewal ends none.
#[derive(Debug, Default)]
pub(crate) struct Serving(RwLock<Option<Arc<CertifiedKey>>>);

impl ResolvesServerCert for Serving {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub(crate) struct Desk {
    serving: Arc<Serving>,
    leaf: Option<Leaf>,
    switch: Switch,
    trust: watch::Sender<Trust>,
    metrics: Arc<Metrics>,
    /// Until there is a certificate.
    pending: Option<Pending>,
}

impl Desk {
    pub(crate) fn new(overlap: Duration, metrics: Arc<Metrics>, pending: Pending) -> Self {
        Self {
            serving: Arc::default(),
            leaf: None,
            switch: Switch::new(overlap),
            trust: watch::Sender::default(),
            metrics,
            pending: Some(pending),
        }
    }

    pub(crate) fn serving(&self) -> Arc<Serving> {
        self.serving.clone()
    }

    /// What API servers are to trust; empty as long as that is not known.
    pub(crate) fn trusted(&self) -> watch::Receiver<Trust> {
        self.trust.subscribe()
    }

    /// What is served.
    pub(super) fn leaf(&self) -> Option<&Leaf> {
        self.leaf.as_ref()
    }

    /// These are to be trusted, beside whoever has signed what is served.
    pub(super) fn trust(&mut self, now: Timestamp, trust: &Trust) {
        self.switch.trust(now, trust);
        let trusted = self.switch.trusted();
        self.trust.send_if_modified(|published| {
            let changed = *published != trusted;
            if changed {
                *published = trusted;
            }
            changed
        });
    }

    /// From when on a certificate that one of these has signed may be served.
    pub(super) fn opens(&self, now: Timestamp, signers: &Trust) -> Timestamp {
        self.switch.opens(now, signers)
    }

    pub(super) fn serve(&mut self, leaf: Leaf) {
        info!(until = %leaf.lifespan.ends, "serving with a new certificate");
        *self.serving.0.write().unwrap_or_else(PoisonError::into_inner) = Some(leaf.key.clone());
        self.metrics.expires(Kind::Leaf, leaf.lifespan.ends);
        self.switch.serve(leaf.signers.clone(), leaf.lifespan.ends);
        self.leaf = Some(leaf);
        self.pending = None;
    }

    /// When the authority ends that signs now.
    pub(super) fn authority_ends(&self, ends: Timestamp) {
        self.metrics.expires(Kind::Authority, ends);
    }
}
