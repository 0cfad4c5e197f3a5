//! What the agent counts. Labels are closed sets.

use std::sync::atomic::AtomicI64;
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(crate) enum Outcome {
    Forwarded,
    Refused,
    /// Answered with 410, because the view had changed.
    Expired,
    Failed,
}

/// What became of a call at the loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(crate) enum Call {
    /// It has the certificate.
    Known,
    /// It has none, or does not speak TLS.
    Unknown,
    /// It did not finish its handshake.
    TimedOut,
    /// It had to make room for others before it finished its handshake.
    Displaced,
    /// It has the certificate, but there are as many of those as there may be.
    TooMany,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutcome {
    outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCall {
    outcome: Call,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Metrics {
    requests: Family<ByOutcome, Counter>,
    calls: Family<ByCall, Counter>,
    repairs: Counter,
    bytes: Counter,
    open_watches: Gauge<i64, AtomicI64>,
    watches_ended_by_view: Counter,
    relists_forced: Counter,
    services_narrowed: Counter,
    views: Counter,
    watch_delay: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            calls: Family::default(),
            repairs: Counter::default(),
            bytes: Counter::default(),
            open_watches: Gauge::default(),
            watches_ended_by_view: Counter::default(),
            relists_forced: Counter::default(),
            services_narrowed: Counter::default(),
            views: Counter::default(),
            // From a microsecond to a quarter of a second.
            watch_delay: Histogram::new(exponential_buckets(1e-6, 4.0, 10)),
        }
    }
}

impl Metrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        // A counter that appears with its first event shows no increase.
        for outcome in [Outcome::Forwarded, Outcome::Refused, Outcome::Expired, Outcome::Failed] {
            drop(self.requests.get_or_create(&ByOutcome { outcome }));
        }
        for outcome in [Call::Known, Call::Unknown, Call::TimedOut, Call::Displaced, Call::TooMany] {
            drop(self.calls.get_or_create(&ByCall { outcome }));
        }
        let registry = registry.sub_registry_with_prefix("isp_agent");
        registry.register(
            "requests",
            "Requests of kube-proxy, by what became of them",
            self.requests.clone(),
        );
        registry.register(
            "calls",
            "Connections to the loopback address, by what became of them",
            self.calls.clone(),
        );
        registry.register(
            "report_repairs",
            "Times that the IngressSourceNode was written again because somebody had changed or deleted it",
            self.repairs.clone(),
        );
        registry.register(
            "forwarded_bytes",
            "Bytes passed from the API server to kube-proxy",
            self.bytes.clone(),
        );
        registry.register("open_watches", "Open watches of Services", self.open_watches.clone());
        registry.register(
            "watches_ended_by_view",
            "Watches of Services that were ended because the view changed",
            self.watches_ended_by_view.clone(),
        );
        registry.register(
            "relists_forced",
            "Reads of Services that were answered with 410, so that kube-proxy lists anew",
            self.relists_forced.clone(),
        );
        registry.register(
            "services_narrowed",
            "Services, in lists and events, of which something was hidden",
            self.services_narrowed.clone(),
        );
        registry.register("views", "Changes of the node's view", self.views.clone());
        registry.register_with_unit(
            "watch_delay",
            "From receiving a part of a watch of Services to handing it on",
            Unit::Seconds,
            self.watch_delay.clone(),
        );
    }

    pub(crate) fn request(&self, outcome: Outcome) {
        self.requests.get_or_create(&ByOutcome { outcome }).inc();
    }

    pub(crate) fn called(&self, outcome: Call) {
        self.calls.get_or_create(&ByCall { outcome }).inc();
    }

    pub(crate) fn repaired(&self) {
        self.repairs.inc();
    }

    pub(crate) fn bytes(&self, count: usize) {
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

    pub(crate) fn narrowed(&self, services: u64) {
        self.services_narrowed.inc_by(services);
    }

    pub(crate) fn watch_delayed(&self, delay: Duration) {
        self.watch_delay.observe(delay.as_secs_f64());
    }

    pub(crate) fn view_changed(&self) {
        self.views.inc();
    }
}
