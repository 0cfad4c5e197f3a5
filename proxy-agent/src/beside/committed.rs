//! What the kernel has, as far as the report and the health checks need it. Kept up to date one
//! Service at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use isp_api::view::NodeView;
use isp_dataplane::choose::health_checks;
use isp_dataplane::model::{Node, ServiceName};

use super::serving::Served;

#[cfg(test)]
mod tests;

/// What the kernel has.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Committed {
    /// The view that is programmed. None before the first commit.
    pub(crate) view: Option<Arc<NodeView>>,
    /// The number of programmed Services.
    pub(crate) number: usize,
    /// The programmed Services of each object.
    pub(crate) of_objects: BTreeMap<Arc<str>, BTreeSet<Arc<ServiceName>>>,
    /// The programmed Services with a `healthCheckNodePort`.
    pub(crate) health_checks: BTreeMap<Arc<ServiceName>, HealthCheck>,
    /// Frontends that several Services claim, in words.
    pub(crate) contests: Vec<String>,
    /// Why the last attempt failed.
    pub(crate) error: Option<String>,
}

/// The health check of a programmed Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HealthCheck {
    pub(crate) port: u16,
    /// The addresses of this node that answer, and the number of ready endpoints that each tells.
    pub(crate) local_endpoints: BTreeMap<IpAddr, usize>,
}

/// A committed Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommittedService {
    objects: Vec<Arc<str>>,
    health_check: Option<HealthCheck>,
}

impl CommittedService {
    pub(crate) fn of(served: &Served, node: &Node) -> Self {
        let health_check = served
            .health_check_node_port
            .map(|port| HealthCheck { port, local_endpoints: health_checks(&served.service, node) });
        Self { objects: served.decision.objects.clone(), health_check }
    }
}

impl Committed {
    /// Forgets all Services.
    pub(crate) fn clear(&mut self) {
        self.of_objects.clear();
        self.health_checks.clear();
    }

    /// Notes a Service. Returns whether it makes a difference.
    pub(crate) fn set(&mut self, name: &Arc<ServiceName>, service: Option<&CommittedService>) -> bool {
        let objects = service.map(|service| service.objects.as_slice()).unwrap_or_default();
        let mut changed = false;
        for (object, services) in &mut self.of_objects {
            if !objects.contains(object) {
                changed |= services.remove(name);
            }
        }
        self.of_objects.retain(|_, services| !services.is_empty());
        for object in objects {
            changed |= self.of_objects.entry(object.clone()).or_default().insert(name.clone());
        }
        let health_check = service.and_then(|service| service.health_check.clone());
        if self.health_checks.get(name) == health_check.as_ref() {
            return changed;
        }
        match health_check {
            Some(check) => self.health_checks.insert(name.clone(), check),
            None => self.health_checks.remove(name),
        };
        true
    }
}
