//! The certificate that new connections get, and the CAs that API servers must trust for it.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use isp_runtime::readiness::{Pending, Readiness};
use k8s_openapi::jiff::Timestamp;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;
use tracing::{error, info};

use super::lifespan::Lifespan;
use super::switch::Switch;
use super::trust::Trust;
use crate::metrics::{Kind, Metrics};

/// A certificate to serve with.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub(super) key: Arc<CertifiedKey>,
    pub(super) lifespan: Lifespan,
    /// The CAs that verify it.
    pub(super) signers: Trust,
}

/// The certificate of new connections. Open connections keep theirs, so a renewal closes none.
#[derive(Debug, Default)]
pub(crate) struct Serving(RwLock<Option<Arc<CertifiedKey>>>);

impl ResolvesServerCert for Serving {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub(crate) struct ServedCertificate {
    serving: Arc<Serving>,
    leaf: Option<Leaf>,
    switch: Switch,
    trust: watch::Sender<Trust>,
    metrics: Arc<Metrics>,
    readiness: Readiness,
    /// Held while no certificate is valid.
    pending: Option<Pending>,
}

/// The name of the readiness condition.
const CERTIFICATE: &str = "certificate";

impl ServedCertificate {
    pub(crate) fn new(overlap: Duration, metrics: Arc<Metrics>, readiness: &Readiness) -> Self {
        Self {
            serving: Arc::default(),
            leaf: None,
            switch: Switch::new(overlap),
            trust: watch::Sender::default(),
            metrics,
            pending: Some(readiness.register(CERTIFICATE)),
            readiness: readiness.clone(),
        }
    }

    pub(crate) fn serving(&self) -> Arc<Serving> {
        self.serving.clone()
    }

    /// The CAs that API servers must trust; empty until they are known.
    pub(crate) fn trusted(&self) -> watch::Receiver<Trust> {
        self.trust.subscribe()
    }

    /// The current certificate.
    pub(super) fn leaf(&self) -> Option<&Leaf> {
        self.leaf.as_ref()
    }

    /// Withdraws readiness once the certificate has expired. Returns when it expires.
    pub(super) fn look(&mut self, now: Timestamp) -> Timestamp {
        match &self.leaf {
            Some(leaf) if now < leaf.lifespan.ends => return leaf.lifespan.ends,
            Some(leaf) if self.pending.is_none() => {
                error!(ended = %leaf.lifespan.ends, "the certificate has expired and there is no other: API servers proceed without the webhook");
                self.pending = Some(self.readiness.register(CERTIFICATE));
            }
            _ => {}
        }
        Timestamp::MAX
    }

    /// Publishes these CAs, and the ones that signed the current certificate.
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

    /// When a certificate signed by one of these may first be served.
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

    /// Records when the signing CA expires.
    pub(super) fn authority_ends(&self, ends: Timestamp) {
        self.metrics.expires(Kind::Authority, ends);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certs::fixtures::at;
    use crate::certs::make;

    #[test]
    fn a_replica_is_ready_while_its_certificate_holds() {
        let readiness = Readiness::default();
        let mut served = ServedCertificate::new(Duration::from_secs(1), Arc::default(), &readiness);
        assert_eq!((served.look(at(0)), readiness.pending()), (Timestamp::MAX, vec![CERTIFICATE]));
        let authority = make::authority(at(0), Duration::from_secs(1000)).unwrap();
        let serve = |served: &mut ServedCertificate, now| {
            served.serve(
                make::leaf(at(now), Duration::from_secs(100), &["webhook".to_owned()], &authority).unwrap(),
            );
        };
        serve(&mut served, 0);
        for now in [0, 99] {
            assert_eq!((served.look(at(now)), readiness.pending()), (at(100), vec![]));
        }
        for now in [100, 101] {
            assert_eq!((served.look(at(now)), readiness.pending()), (Timestamp::MAX, vec![CERTIFICATE]));
        }
        serve(&mut served, 150);
        assert_eq!((served.look(at(150)), readiness.pending()), (at(250), vec![]));
    }
}
