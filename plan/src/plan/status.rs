//! Builds the status: conditions, counts and, in `notices`, Events for what has changed.

mod nodes;
mod notices;

use isp_api::Reason;
use isp_api::conditions::record;
use isp_api::names::condition;
use isp_api::preserve::{IngressSourcePreserveStatus, Mode, Phase, ServiceState, ServiceStatus, Summary};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use super::kube_proxy;
use super::pools::Pools;
use super::rollout::{Rollout, State, whose};
use super::services::News;
use super::snapshot::{Deletion, Object, Snapshot};
use super::{Plan, sidecars};
use crate::action::Action;

/// A condition without its transition time.
struct NewCondition {
    holds: bool,
    reason: Reason,
    message: String,
}

fn yes(reason: Reason, message: impl Into<String>) -> NewCondition {
    NewCondition { holds: true, reason, message: message.into() }
}

fn no(reason: Reason, message: impl Into<String>) -> NewCondition {
    NewCondition { holds: false, reason, message: message.into() }
}

pub(super) fn plan(
    snapshot: &Snapshot<'_>,
    pools: &Pools<'_>,
    rollout: &Rollout<'_>,
    news: &News,
    plan: &mut Plan,
) {
    for (place, object) in snapshot.objects.iter().enumerate() {
        let services = news.get(&place).map(Vec::as_slice).unwrap_or_default();
        let story = StatusBuilder { snapshot, pools, rollout, object, services };
        let before = object.written.status.clone().unwrap_or_default();
        let status = story.status(&before);
        // Removing the finalizer may delete the object, so a status write after it could fail.
        let leaves = plan.actions.iter().any(|action| {
            matches!(action, Action::Finalizer { object: name, held: false, .. } if name == object.name)
        });
        if status == before || leaves {
            continue;
        }
        plan.notices.extend(story.notices(&before, &status));
        plan.actions.push(Action::Status {
            object: object.name.to_owned(),
            uid: object.uid.to_owned(),
            status: Box::new(status),
        });
    }
}

/// Builds the status of one object.
struct StatusBuilder<'s, 'a> {
    snapshot: &'s Snapshot<'a>,
    pools: &'s Pools<'a>,
    rollout: &'s Rollout<'a>,
    object: &'s Object<'a>,
    services: &'s [ServiceStatus],
}

impl StatusBuilder<'_, '_> {
    fn status(&self, before: &IngressSourcePreserveStatus) -> IngressSourcePreserveStatus {
        let object = self.object;
        let (elsewhere, acknowledged) = self.rollout.acknowledged(self.snapshot, object);
        let checked = self.checked();
        let agents = self.agents(elsewhere);
        let marked = match object.mode {
            Mode::Filter => "carry the label",
            Mode::Beside => "carry both labels",
        };
        let labelled = self.services_are(Reason::Labelled, marked, |state| {
            [ServiceState::Labelled, ServiceState::Preserved].contains(&state)
        });
        let local = self.services_are(Reason::LocalPolicySet, "have externalTrafficPolicy Local", |state| {
            state == ServiceState::Preserved
        });
        let heard = if elsewhere == acknowledged {
            yes(
                Reason::Acknowledged,
                format!("all {elsewhere} {} have acknowledged their view", whose(object.mode)),
            )
        } else if let Some(node) = self.suspect(|place| self.rollout.strays[place]) {
            let message = format!(
                "the cluster's own kube-proxy runs on node {node} in addition to the agent's and sees all Services: check that its \
                 DaemonSet has the node affinity, and that its pod terminates"
            );
            no(Reason::KubeProxyRuns, message)
        } else if let Some(node) = self.suspect(|place| !self.rollout.strays[place]) {
            let message = format!(
                "the cluster's own kube-proxy ran on node {node} in addition to the agent's and left rules there: the operator restarts \
                 the agent, which rewrites all rules"
            );
            no(Reason::RulesOutdated, message)
        } else {
            no(
                Reason::Waiting,
                format!(
                    "{acknowledged} of {elsewhere} {} have acknowledged generation {}",
                    whose(object.mode),
                    object.generation
                ),
            )
        };
        let conflict = self.conflict();
        let degraded = self.degraded();
        let steps = [&checked, &agents, &labelled, &heard, &local];
        let ready = self.ready(&steps, &conflict, &degraded);
        let progressing = self.progressing(&ready, &checked, &agents, &conflict, &steps);
        let phase = self.phase(&ready, &conflict, &degraded, &checked);

        let mut conditions = before.conditions.clone();
        let all = [
            (condition::READY, ready),
            (condition::PROGRESSING, progressing),
            (condition::DEGRADED, degraded),
            (condition::CONFLICT, conflict),
            (condition::CHECKED, checked),
            (condition::AGENTS_READY, agents),
            (condition::LABELLED, labelled),
            (condition::ACKNOWLEDGED, heard),
            (condition::LOCAL_POLICY_SET, local),
        ];
        for (type_, said) in all {
            record(&mut conditions, self.condition(type_, said));
        }
        let sidecars = sidecars::count(self.snapshot, object);
        match sidecars::said(self.snapshot, object, sidecars.as_ref()) {
            Some((holds, reason, message)) => {
                let said = NewCondition { holds, reason, message };
                record(&mut conditions, self.condition(condition::SIDECARS_CONSISTENT, said));
            }
            None => conditions.retain(|condition| condition.type_ != condition::SIDECARS_CONSISTENT),
        }
        let preserved = self.count(ServiceState::Preserved);
        IngressSourcePreserveStatus {
            observed_generation: Some(object.generation),
            phase: Some(phase),
            summary: Some(Summary {
                services: format!("{preserved}/{}", self.services.len()),
                nodes: format!("{acknowledged}/{elsewhere}"),
            }),
            ingress_nodes: self.ingress_nodes(before),
            conditions,
            services: self.services.to_vec(),
            node_pools: self.node_pools(),
            left_out: self.left_out(),
            kube_proxy: kube_proxy::status(self.snapshot, self.pools, object),
            sidecars,
        }
    }

    fn condition(&self, type_: &str, said: NewCondition) -> Condition {
        let now = Timestamp::from_second(self.snapshot.now.as_second()).unwrap_or(self.snapshot.now);
        Condition {
            type_: type_.to_owned(),
            status: if said.holds { "True" } else { "False" }.to_owned(),
            reason: said.reason.to_string(),
            message: said.message,
            last_transition_time: Time(now),
            observed_generation: Some(self.object.generation),
        }
    }

    fn count(&self, state: ServiceState) -> usize {
        self.services.iter().filter(|service| service.state == state).count()
    }

    /// Step 1. Conflicts have their own condition.
    fn checked(&self) -> NewCondition {
        let found: Vec<_> = self.object.checks.iter().filter(|finding| !finding.is_conflict()).collect();
        match found.first() {
            _ if self.object.deletion.is_some() => no(Reason::Terminating, "the object is being deleted"),
            None => yes(Reason::Checked, "every Service has a ready endpoint on an ingress node"),
            Some(first) => no(first.reason(), with_more(first.message(), found.len() - 1)),
        }
    }

    fn services_are(&self, reason: Reason, what: &str, holds: impl Fn(ServiceState) -> bool) -> NewCondition {
        let wanted = self.services.iter().filter(|service| service.state != ServiceState::Restoring);
        let (done, left): (Vec<_>, Vec<_>) = wanted.partition(|service| holds(service.state));
        match left.first() {
            None if done.is_empty() => no(Reason::NoServices, "the object selects no Service"),
            None => yes(reason, format!("all {} Services {what}", done.len())),
            Some(first) => {
                let why = first.message.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
                let message = format!("Service {}/{} does not yet {what}{why}", first.namespace, first.name);
                no(Reason::Waiting, with_more(message, left.len() - 1))
            }
        }
    }

    fn conflict(&self) -> NewCondition {
        let mut found: Vec<(Reason, String)> =
            self.object.conflicts.iter().map(|conflict| (conflict.reason(), conflict.to_string())).collect();
        let of_services = self.services.iter().filter(|service| service.state == ServiceState::Conflict);
        found.extend(
            of_services.map(|service| (Reason::FieldDeclared, service.message.clone().unwrap_or_default())),
        );
        if self.object.deletion.is_none() {
            let fought =
                |problem: &&kube_proxy::Problem| matches!(problem, kube_proxy::Problem::NotKeptOff { .. });
            let problems = self.own_pools().filter_map(|(_, pool)| pool.made.as_ref().err()).filter(fought);
            found.extend(problems.map(|problem| (problem.reason(), problem.to_string())));
        }
        match found.first() {
            None => no(Reason::None, "no conflict found"),
            Some((reason, message)) => yes(*reason, with_more(message.clone(), found.len() - 1)),
        }
    }

    fn degraded(&self) -> NewCondition {
        let lost = self.services.iter().filter(|service| match service.state {
            ServiceState::Preserved => service.ingress_endpoints == 0,
            ServiceState::Open | ServiceState::FellBack => true,
            _ => false,
        });
        let lost: Vec<String> = lost
            .map(|service| {
                let outcome = match service.state {
                    ServiceState::FellBack => "it fell back to Cluster, so the source IP is lost",
                    ServiceState::Open => "every node shows it, and those with an endpoint answer",
                    _ => "external traffic to it is dropped",
                };
                format!(
                    "Service {}/{} has no ready endpoint on an ingress node: {outcome}",
                    service.namespace, service.name
                )
            })
            .collect();
        if let Some(first) = lost.first() {
            return yes(Reason::NoIngressEndpoint, with_more(first.clone(), lost.len() - 1));
        }
        if let Some(first) = self.object.kept.first().filter(|_| self.object.deletion.is_none()) {
            let message = format!(
                "spec.ingressNodes no longer selects node {}, which is the last that serves a Service, so it stays an ingress node: select a \
                 node that runs an endpoint of each Service",
                self.snapshot.nodes[*first].0
            );
            return yes(Reason::LastIngressNode, with_more(message, self.object.kept.len() - 1));
        }
        if self.object.deletion.is_none()
            && let Some((_, node, State::NotReady { reason, .. })) =
                self.elsewhere().find(|(_, _, state)| matches!(state, State::NotReady { lasts: true, .. }))
        {
            let rules = match self.object.mode {
                Mode::Filter => "",
                Mode::Beside => "; its rules stay as they are, without endpoints that are new since then",
            };
            let message = format!("the agent of {} is not ready: {reason}{rules}", self.called(node));
            return yes(Reason::AgentNotReady, message);
        }
        let failed = |state: &State| matches!(state, State::Late(_) | State::Failed(_));
        if self.object.deletion.is_none()
            && let Some((pool, node, _)) = self.elsewhere().find(|(_, _, state)| failed(state))
        {
            let message = match self.object.mode {
                Mode::Filter => {
                    format!("the agent of node {node} in pool {} missed its deadline", pool.unwrap_or("?"))
                }
                Mode::Beside => {
                    let node = self.called(node);
                    format!("the agent of {node} missed its deadline, so {node} does not serve the Services")
                }
            };
            return yes(Reason::WaveFailed, message);
        }
        no(Reason::None, "no problem found")
    }

    /// A node, in words: an ingress node without an agent is one way in less.
    fn called(&self, node: &str) -> String {
        let place = self.snapshot.nodes.binary_search_by_key(&node, |(name, _)| *name);
        let is_ingress = place.is_ok_and(|place| self.object.ingress[place]);
        if is_ingress { format!("ingress node {node}") } else { format!("node {node}") }
    }

    fn ready(
        &self,
        steps: &[&NewCondition],
        conflict: &NewCondition,
        degraded: &NewCondition,
    ) -> NewCondition {
        if self.object.deletion.is_some() {
            return no(Reason::Terminating, "the object is being deleted");
        }
        if conflict.holds {
            return no(Reason::Conflict, conflict.message.clone());
        }
        if degraded.holds {
            return no(Reason::Degraded, degraded.message.clone());
        }
        if let Some(step) = steps.iter().find(|step| !step.holds) {
            return no(step.reason, step.message.clone());
        }
        let count = self.count(ServiceState::Preserved);
        let services = if count == 1 { "Service" } else { "Services" };
        yes(Reason::Preserved, format!("the source IP reaches {count} {services}"))
    }

    fn progressing(
        &self,
        ready: &NewCondition,
        checked: &NewCondition,
        agents: &NewCondition,
        conflict: &NewCondition,
        steps: &[&NewCondition],
    ) -> NewCondition {
        match self.object.deletion {
            Some(Deletion::Restore) => {
                let left = self.object.touched.len();
                let message = if left > 0 {
                    format!("{left} Services are being restored")
                } else {
                    match self.object.mode {
                        Mode::Filter => "nodes are being handed back to the cluster's kube-proxy".to_owned(),
                        Mode::Beside => "the agents are being removed".to_owned(),
                    }
                };
                return yes(Reason::Restoring, message);
            }
            Some(Deletion::Retain) => {
                return yes(Reason::Retaining, "nothing is restored, because deletionPolicy is Retain");
            }
            None => {}
        }
        if ready.holds {
            return no(Reason::Done, "nothing is left to do");
        }
        let stuck = [
            Reason::WaveFailed,
            Reason::Paused,
            Reason::NodeWithoutPool,
            Reason::KubeProxyNotFound,
            Reason::KubeProxyAmbiguous,
            Reason::KubeProxyUnusable,
            Reason::KubeProxyNotKeptOff,
        ];
        if conflict.holds
            || stuck.contains(&agents.reason)
            || (!checked.holds && self.object.touched.is_empty())
        {
            return no(Reason::Stopped, ready.message.clone());
        }
        match steps.iter().find(|step| !step.holds) {
            Some(step) => yes(step.reason, step.message.clone()),
            None => no(Reason::Stopped, ready.message.clone()),
        }
    }

    fn phase(
        &self,
        ready: &NewCondition,
        conflict: &NewCondition,
        degraded: &NewCondition,
        checked: &NewCondition,
    ) -> Phase {
        match self.object.deletion {
            Some(_) => Phase::Terminating,
            None if conflict.holds => Phase::Conflict,
            None if degraded.holds => Phase::Degraded,
            None if ready.holds => Phase::Ready,
            None if !checked.holds && self.object.touched.is_empty() => Phase::Pending,
            None => Phase::Progressing,
        }
    }
}

fn with_more(message: String, more: usize) -> String {
    if more == 0 { message } else { format!("{message} (and {more} more)") }
}
