//! The facts after the plan's last step: what the simulated operator has written, over the present
//! facts.

use isp_api::IngressSourceNode;
use isp_api::node::{AcknowledgedView, IngressSourceNodeSpec, IngressSourceNodeStatus};
use isp_api::preserve::TrafficPolicy;
use isp_plan::cluster::Report;
use k8s_openapi::api::core::v1::{LoadBalancerStatus, Service as ServiceObject, ServiceStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;

use crate::doctor::Cluster;

/// The API server allocates a port for health checks; which one does not matter.
const SOME_PORT: i32 = 32_000;

pub(super) fn after(now: &Cluster, end: &isp_plan::Cluster) -> Cluster {
    let mut after = now.clone();
    after.objects = end.objects.values().cloned().collect();
    for object in end.objects.values() {
        after.paths.take_object(object.clone());
    }
    for (key, facts) in &end.services {
        let Some(service) = after.services.get_mut(key) else { continue };
        service.facts = facts.clone();
        service.spec.external_traffic_policy = facts.policy.map(|policy| match policy {
            TrafficPolicy::Cluster => "Cluster".to_owned(),
            TrafficPolicy::Local => "Local".to_owned(),
        });
        let allocated = (service.is_local() && facts.balanced).then_some(SOME_PORT);
        service.spec.health_check_node_port = facts.health_check_node_port.or(allocated);
        let metadata = ObjectMeta {
            namespace: Some(key.namespace.clone()),
            name: Some(key.name.clone()),
            labels: Some(facts.labels.clone()),
            ..ObjectMeta::default()
        };
        let load_balancer = Some(LoadBalancerStatus { ingress: Some(service.ingress.clone()) });
        let status = Some(ServiceStatus { load_balancer, ..ServiceStatus::default() });
        after.paths.take_service(&ServiceObject { metadata, spec: Some(service.spec.clone()), status });
    }
    for (name, report) in &end.reports {
        let report = written(end, name, report);
        after.paths.take_report(report.clone());
        after.reports.insert(name.clone(), report);
    }
    after
}

/// The report as its agent would write it.
fn written(end: &isp_plan::Cluster, name: &str, report: &Report) -> IngressSourceNode {
    let view = |(uid, acknowledged): (&String, &isp_plan::cluster::Acknowledged)| {
        let object = end.objects.values().find(|object| object.uid().as_ref() == Some(uid))?;
        Some(AcknowledgedView {
            object: object.name_any(),
            uid: uid.clone(),
            generation: acknowledged.generation,
            view: acknowledged.view,
            received: true,
            services: acknowledged.services.iter().map(ToString::to_string).collect(),
            programmed: Some(true),
        })
    };
    let mut object = IngressSourceNode::new(name, IngressSourceNodeSpec {});
    object.status = Some(IngressSourceNodeStatus {
        pool: report.pool.clone(),
        revision: report.revision.clone(),
        mode: report.mode,
        views: report.acknowledged.iter().filter_map(view).collect(),
        active: report.active,
        served: Some(report.served),
        last_sync: None,
        conditions: Vec::new(),
    });
    object
}
