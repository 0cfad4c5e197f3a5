//! Events for status changes of the object and its Services.

use isp_api::Reason;
use isp_api::conditions::find;
use isp_api::names::condition;
use isp_api::preserve::{IngressSourcePreserveStatus, ServiceState, ServiceStatus};

use super::StatusBuilder;
use crate::cluster::Key;
use crate::plan::{About, Notice, sidecars};

/// Reasons of `AgentsReady` that are published as warnings.
const FAILURES: [Reason; 3] = [Reason::WaveFailed, Reason::AgentNotReady, Reason::KubeProxyNotKeptOff];

impl StatusBuilder<'_, '_> {
    /// All Events for the change from `before` to `now`, in order.
    pub(super) fn notices(
        &self,
        before: &IngressSourcePreserveStatus,
        now: &IngressSourcePreserveStatus,
    ) -> Vec<Notice> {
        let mut notices = Vec::new();
        let about = || About::Object { name: self.object.name.to_owned(), uid: self.object.uid.to_owned() };
        for (type_, bad) in [
            (condition::READY, false),
            (condition::DEGRADED, true),
            (condition::CONFLICT, true),
            (condition::AGENTS_READY, false),
        ] {
            let Some(said) = find(&now.conditions, type_) else { continue };
            let earlier = find(&before.conditions, type_);
            let turned = earlier.is_none_or(|earlier| earlier.status != said.status);
            let failed =
                type_ == condition::AGENTS_READY && FAILURES.iter().any(|reason| *reason == said.reason);
            let newly = failed && earlier.is_none_or(|earlier| earlier.reason != said.reason);
            if (turned && said.status == "True") || newly {
                notices.push(Notice {
                    about: about(),
                    warning: bad || failed,
                    reason: said.reason.clone(),
                    message: said.message.clone(),
                });
            }
        }
        notices.extend(sidecars::notice(before.sidecars.as_ref(), now.sidecars.as_ref()).map(
            |(reason, message)| Notice { about: about(), warning: true, reason: reason.to_string(), message },
        ));
        for service in &now.services {
            let earlier = before
                .services
                .iter()
                .find(|earlier| earlier.namespace == service.namespace && earlier.name == service.name);
            notices.extend(self.service_notice(earlier, service));
        }
        notices
    }

    fn service_notice(&self, before: Option<&ServiceStatus>, now: &ServiceStatus) -> Option<Notice> {
        let key = Key::new(now.namespace.clone(), now.name.clone());
        let uid = self.snapshot.service(&key)?.identity.uid.clone();
        let name = self.object.name;
        let lost = |service: &ServiceStatus| {
            service.state == ServiceState::Preserved && service.ingress_endpoints == 0
        };
        let turned = before.is_none_or(|before| before.state != now.state);
        let (warning, reason, message) = if lost(now) && !before.is_some_and(lost) {
            (
                true,
                Reason::NoIngressEndpoint,
                "no ingress node has a ready endpoint: external traffic to it is dropped".to_owned(),
            )
        } else if turned {
            match now.state {
                ServiceState::Preserved => (
                    false,
                    Reason::Preserved,
                    format!("externalTrafficPolicy is Local, for IngressSourcePreserve {name}"),
                ),
                ServiceState::Open => (
                    true,
                    Reason::Open,
                    "every node shows it until an ingress node has an endpoint again".to_owned(),
                ),
                ServiceState::FellBack => (
                    true,
                    Reason::FellBack,
                    "externalTrafficPolicy is Cluster until an ingress node has an endpoint again".to_owned(),
                ),
                ServiceState::Conflict => {
                    (true, Reason::FieldDeclared, now.message.clone().unwrap_or_default())
                }
                ServiceState::Restoring => (
                    false,
                    Reason::Restoring,
                    format!("restored to its state before IngressSourcePreserve {name}"),
                ),
                ServiceState::Missing | ServiceState::Waiting | ServiceState::Labelled => return None,
            }
        } else {
            return None;
        };
        Some(Notice { about: About::Service { key, uid }, warning, reason: reason.to_string(), message })
    }
}
