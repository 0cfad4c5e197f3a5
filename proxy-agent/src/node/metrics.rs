//! The metrics of every mode.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

#[derive(Debug, Default)]
pub(crate) struct NodeMetrics {
    report_repairs: Counter,
    views: Counter,
}

impl NodeMetrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("isp_agent");
        registry.register(
            "report_repairs",
            "Times that the agent rewrote the IngressSourceNode because somebody changed or deleted it",
            self.report_repairs.clone(),
        );
        registry.register("views", "Changes of the node's view", self.views.clone());
    }

    pub(crate) fn report_repaired(&self) {
        self.report_repairs.inc();
    }

    pub(crate) fn view_changed(&self) {
        self.views.inc();
    }
}
