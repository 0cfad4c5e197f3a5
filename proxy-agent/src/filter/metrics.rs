//! The metrics of mode Filter. Labels are closed sets.

use std::sync::atomic::AtomicI64;
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// How the agent handled a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(crate) enum RequestOutcome {
    Forwarded,
    Refused,
    /// The agent answered 410, because the view had changed.
    Expired,
    Failed,
}

/// How the agent handled a connection to the loopback address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(crate) enum ConnectionOutcome {
    /// The client has the certificate.
    Known,
    /// The client has no certificate, or does not speak TLS.
    Unknown,
    /// The handshake did not complete in time.
    TimedOut,
    /// The connection made room for others before its handshake was complete.
    Displaced,
    /// The client has the certificate, but the limit of such connections is reached.
    TooMany,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByRequestOutcome {
    outcome: RequestOutcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByConnectionOutcome {
    outcome: ConnectionOutcome,
}

#[derive(Debug)]
pub(crate) struct FilterMetrics {
    requests: Family<ByRequestOutcome, Counter>,
    calls: Family<ByConnectionOutcome, Counter>,
    bytes: Counter,
    open_watches: Gauge<i64, AtomicI64>,
    watches_ended_by_view: Counter,
    relists_forced: Counter,
    services_narrowed: Counter,
    watch_delay: Histogram,
}

impl Default for FilterMetrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            calls: Family::default(),
            bytes: Counter::default(),
            open_watches: Gauge::default(),
            watches_ended_by_view: Counter::default(),
            relists_forced: Counter::default(),
            services_narrowed: Counter::default(),
            // From a microsecond to a quarter of a second.
            watch_delay: Histogram::new(exponential_buckets(1e-6, 4.0, 10)),
        }
    }
}

impl FilterMetrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        // A counter that appears only with its first event would show no increase.
        for outcome in [
            RequestOutcome::Forwarded,
            RequestOutcome::Refused,
            RequestOutcome::Expired,
            RequestOutcome::Failed,
        ] {
            drop(self.requests.get_or_create(&ByRequestOutcome { outcome }));
        }
        for outcome in [
            ConnectionOutcome::Known,
            ConnectionOutcome::Unknown,
            ConnectionOutcome::TimedOut,
            ConnectionOutcome::Displaced,
            ConnectionOutcome::TooMany,
        ] {
            drop(self.calls.get_or_create(&ByConnectionOutcome { outcome }));
        }
        let registry = registry.sub_registry_with_prefix("isp_agent");
        registry.register("requests", "Requests of kube-proxy by outcome", self.requests.clone());
        registry.register("calls", "Connections to the loopback address by outcome", self.calls.clone());
        registry.register(
            "forwarded_bytes",
            "Bytes forwarded from the API server to kube-proxy",
            self.bytes.clone(),
        );
        registry.register("open_watches", "Open watches of Services", self.open_watches.clone());
        registry.register(
            "watches_ended_by_view",
            "Watches of Services that the agent ended because the view changed",
            self.watches_ended_by_view.clone(),
        );
        registry.register(
            "relists_forced",
            "Reads of Services that the agent answered with 410, so that kube-proxy lists again",
            self.relists_forced.clone(),
        );
        registry.register(
            "services_narrowed",
            "Services in lists and events of which the agent hid a part",
            self.services_narrowed.clone(),
        );
        registry.register_with_unit(
            "watch_delay",
            "Time from receiving a part of a watch of Services to forwarding it",
            Unit::Seconds,
            self.watch_delay.clone(),
        );
    }

    pub(crate) fn request(&self, outcome: RequestOutcome) {
        self.requests.get_or_create(&ByRequestOutcome { outcome }).inc();
    }

    pub(crate) fn connection(&self, outcome: ConnectionOutcome) {
        self.calls.get_or_create(&ByConnectionOutcome { outcome }).inc();
    }

    pub(crate) fn bytes_forwarded(&self, count: usize) {
        self.bytes.inc_by(count as u64);
    }

    pub(crate) fn watch_opened(&self) {
        self.open_watches.inc();
    }

    pub(crate) fn watch_closed(&self) {
        self.open_watches.dec();
    }

    pub(crate) fn watch_ended_by_view(&self) {
        self.watches_ended_by_view.inc();
    }

    pub(crate) fn relist_forced(&self) {
        self.relists_forced.inc();
    }

    pub(crate) fn services_narrowed(&self, services: u64) {
        self.services_narrowed.inc_by(services);
    }

    pub(crate) fn watch_delayed(&self, delay: Duration) {
        self.watch_delay.observe(delay.as_secs_f64());
    }
}
