//! The webhook's metrics. Label values are closed sets.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// The kind of certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(crate) enum Kind {
    /// The serving certificate.
    Leaf,
    /// The CA that signed it.
    Authority,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByKind {
    certificate: Kind,
}

/// Why a TLS handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(crate) enum HandshakeFailure {
    /// Rejected, for example by a caller that does not trust the certificate.
    Refused,
    TimedOut,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByFailure {
    reason: HandshakeFailure,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(crate) enum WriteOutcome {
    Done,
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByWrite {
    outcome: WriteOutcome,
}

/// The kind of review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(crate) enum Path {
    Pods,
    Objects,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByPath {
    about: Path,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutcome {
    about: Path,
    outcome: &'static str,
}

/// All metrics of the webhook.
#[derive(Debug)]
pub(crate) struct Metrics {
    reviews: Family<ByOutcome, Counter>,
    review_duration: Family<ByPath, Histogram, fn() -> Histogram>,
    certificate_expiry: Family<ByKind, Gauge>,
    open_connections: Gauge,
    handshake_failures: Family<ByFailure, Counter>,
    ca_bundle_writes: Family<ByWrite, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            reviews: Family::default(),
            // Buckets from 50 µs to 1.6 s, just below the API server's timeout.
            review_duration: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.000_05, 2.0, 16))
            }),
            certificate_expiry: Family::default(),
            open_connections: Gauge::default(),
            handshake_failures: Family::default(),
            ca_bundle_writes: Family::default(),
        }
    }
}

impl Metrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("isp_webhook");
        registry.register("reviews", "Reviews, by outcome", self.reviews.clone());
        registry.register_with_unit(
            "review_duration",
            "Time from receiving a review to its response",
            Unit::Seconds,
            self.review_duration.clone(),
        );
        registry.register_with_unit(
            "certificate_expiry",
            "When the certificate expires, in seconds since 1970",
            Unit::Seconds,
            self.certificate_expiry.clone(),
        );
        registry.register("open_connections", "Open connections", self.open_connections.clone());
        registry.register(
            "handshake_failures",
            "Connections whose TLS handshake failed",
            self.handshake_failures.clone(),
        );
        registry.register(
            "ca_bundle_writes",
            "Writes of the caBundle to the configuration",
            self.ca_bundle_writes.clone(),
        );
    }

    pub(crate) fn reviewed(&self, about: Path, outcome: &'static str, duration: Duration) {
        self.reviews.get_or_create(&ByOutcome { about, outcome }).inc();
        self.review_duration.get_or_create(&ByPath { about }).observe(duration.as_secs_f64());
    }

    pub(crate) fn expires(&self, certificate: Kind, time: Timestamp) {
        self.certificate_expiry.get_or_create(&ByKind { certificate }).set(time.as_second());
    }

    /// Counts an open connection until the returned guard is dropped.
    pub(crate) fn connection(&self) -> OpenConnection {
        self.open_connections.inc();
        OpenConnection(self.open_connections.clone())
    }

    pub(crate) fn handshake_failed(&self, reason: HandshakeFailure) {
        self.handshake_failures.get_or_create(&ByFailure { reason }).inc();
    }

    pub(crate) fn ca_bundle_written(&self, outcome: WriteOutcome) {
        self.ca_bundle_writes.get_or_create(&ByWrite { outcome }).inc();
    }
}

/// See [`Metrics::connection`].
#[derive(Debug)]
pub(crate) struct OpenConnection(Gauge);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}
