//! The metrics of mode Beside.

use std::sync::atomic::AtomicI64;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use super::programmer::Outcome;

#[derive(Debug)]
pub(crate) struct BesideMetrics {
    commits: Counter,
    operations: Counter,
    failures: Counter,
    repairs: Counter,
    tables_loaded: Counter,
    flows_deleted: Counter,
    services_looked_at: Counter,
    services: Gauge<i64, AtomicI64>,
    ports_refused: Gauge<i64, AtomicI64>,
    frontends_contested: Gauge<i64, AtomicI64>,
    health_check_ports_blocked: Gauge<i64, AtomicI64>,
    commit_duration: Histogram,
}

impl Default for BesideMetrics {
    fn default() -> Self {
        Self {
            commits: Counter::default(),
            operations: Counter::default(),
            failures: Counter::default(),
            repairs: Counter::default(),
            tables_loaded: Counter::default(),
            flows_deleted: Counter::default(),
            services_looked_at: Counter::default(),
            services: Gauge::default(),
            ports_refused: Gauge::default(),
            frontends_contested: Gauge::default(),
            health_check_ports_blocked: Gauge::default(),
            // From 50 µs to 26 s.
            commit_duration: Histogram::new(exponential_buckets(0.000_05, 2.0, 20)),
        }
    }
}

impl BesideMetrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("isp_beside");
        registry.register("commits", "Transactions that the kernel has committed", self.commits.clone());
        registry.register("operations", "Operations in these transactions", self.operations.clone());
        registry.register("failures", "Attempts to program the kernel that failed", self.failures.clone());
        registry.register(
            "repairs",
            "Times that another program changed the agent's tables",
            self.repairs.clone(),
        );
        registry.register("tables_loaded", "Tables that were written as a whole", self.tables_loaded.clone());
        registry.register(
            "stale_connections_deleted",
            "Tracked UDP connections that were deleted because their endpoint is gone",
            self.flows_deleted.clone(),
        );
        registry.register(
            "ports_refused",
            "Service ports that are not served, because all identities are in use",
            self.ports_refused.clone(),
        );
        registry.register(
            "services_looked_at",
            "Services that the agent looked at in order to decide what to program",
            self.services_looked_at.clone(),
        );
        registry.register("services", "Services that are programmed", self.services.clone());
        registry.register(
            "frontends_contested",
            "Addresses and ports that several Services claim; only the oldest Service has each",
            self.frontends_contested.clone(),
        );
        registry.register(
            "health_check_ports_blocked",
            "Health check ports of Services that another process holds",
            self.health_check_ports_blocked.clone(),
        );
        registry.register_with_unit(
            "commit_duration",
            "Time from a decision to its commit",
            Unit::Seconds,
            self.commit_duration.clone(),
        );
    }

    pub(crate) fn committed(&self, outcome: &Outcome, took: Duration) {
        self.commits.inc();
        self.operations.inc_by(outcome.operations as u64);
        self.tables_loaded.inc_by(outcome.loaded as u64);
        self.flows_deleted.inc_by(outcome.flows as u64);
        self.services.set(number(outcome.services));
        self.ports_refused.set(number(outcome.refused.len()));
        self.frontends_contested.set(number(outcome.contests.len()));
        self.commit_duration.observe(took.as_secs_f64());
    }

    /// Sets the number of Services that were looked at since the start.
    pub(crate) fn looked_at(&self, number: u64) {
        self.services_looked_at.inc_by(number.saturating_sub(self.services_looked_at.get()));
    }

    pub(crate) fn health_check_ports_blocked(&self, ports: usize) {
        self.health_check_ports_blocked.set(number(ports));
    }

    pub(crate) fn failed(&self) {
        self.failures.inc();
    }

    pub(crate) fn repaired(&self) {
        self.repairs.inc();
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
