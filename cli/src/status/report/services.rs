//! The Services of an object, one line each.

use isp_api::preserve::{IngressSourcePreserveStatus, ServiceState, ServiceStatus};

use super::{HINT, ObjectReport};
use crate::text::{count, cut};

const MAX_SERVICES: usize = 8;

impl ObjectReport<'_> {
    pub(super) fn services(&self, status: &IngressSourcePreserveStatus) -> Vec<String> {
        let services = &status.services;
        if services.is_empty() {
            return vec!["none".to_owned()];
        }
        let width = services.iter().map(|service| name(service).len()).max().unwrap_or_default();
        let mut shown: Vec<&ServiceStatus> = services.iter().collect();
        let max = self.max(MAX_SERVICES);
        // If some are left out, those with a problem come first.
        if shown.len() > max {
            shown.sort_by_key(|service| {
                service.state == ServiceState::Preserved && service.ingress_endpoints > 0
            });
        }
        let lines = shown.iter().map(|service| self.service(status, service, width)).collect();
        cut(lines, max, HINT)
    }

    fn service(&self, status: &IngressSourcePreserveStatus, service: &ServiceStatus, width: usize) -> String {
        let addresses = match service.addresses.as_slice() {
            [] => "no external address".to_owned(),
            addresses => addresses.join(" "),
        };
        let endpoints = format!("{} on ingress nodes", count(service.ingress_endpoints, "endpoint"));
        let original = service.original.as_ref().filter(|_| self.context.wide);
        let original = original.map(|original| format!(", was {:?}", original.external_traffic_policy));
        // A message that is also a condition's is printed with the problems.
        let repeated = |message: &&String| status.conditions.iter().any(|found| found.message == **message);
        let message = service.message.as_ref().filter(|message| !repeated(message));
        let message = message.map(|message| format!(": {message}"));
        format!(
            "{:width$}  {:?}, {addresses}, {endpoints}{}{}",
            name(service),
            service.state,
            original.unwrap_or_default(),
            message.unwrap_or_default()
        )
    }
}

fn name(service: &ServiceStatus) -> String {
    format!("{}/{}", service.namespace, service.name)
}
