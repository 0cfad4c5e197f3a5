//! How far the kernel has come with the node's view in mode Beside: it has a view once a commit
//! with all Services of it has succeeded.

use std::collections::BTreeMap;
use std::time::Duration;

use isp_api::node::{AcknowledgedView, AgentMode, IngressSourceNodeStatus};
use isp_api::view::ObjectView;
use tokio::sync::watch;

use super::committed::Committed;
use super::health_checks::Blocked;
use crate::node::progress::{Acknowledgement, Progress, ReadyCondition};
use crate::node::view::EpochView;

#[cfg(test)]
mod tests;

/// The most complaints that the report lists.
const MOST_COMPLAINTS: usize = 3;

/// Follows the commits and the ports of health checks.
pub(crate) struct BesideProgress {
    pub(crate) commits: watch::Receiver<Committed>,
    pub(crate) blocked: watch::Receiver<Blocked>,
}

impl Progress for BesideProgress {
    type Acknowledgement = BesideAcknowledgement;

    async fn changed(&mut self) {
        tokio::select! {
            Ok(()) = self.commits.changed() => {}
            Ok(()) = self.blocked.changed() => {}
            // The loop has ended, and the program ends with it.
            else => std::future::pending::<()>().await,
        }
    }

    async fn acknowledge(&mut self, current: &EpochView) -> BesideAcknowledgement {
        let blocked = self.blocked.borrow_and_update();
        let blocked = blocked.iter().map(|(address, name)| {
            format!("another process holds {address}, for the healthCheckNodePort of {name}")
        });
        let committed = self.commits.borrow_and_update();
        let of_object = |object: &ObjectView| {
            let services = committed.of_objects.get(object.object.as_str()).into_iter().flatten();
            (object.uid.clone(), services.map(ToString::to_string).collect())
        };
        BesideAcknowledgement {
            applied: committed.view.as_ref() == Some(&current.view),
            is_active: committed.view.is_some(),
            number: committed.number,
            services: current.view.objects.iter().map(of_object).collect(),
            complaints: committed.contests.iter().cloned().chain(blocked).collect(),
            error: committed.error.clone(),
        }
    }
}

/// What the kernel has, compared with one view.
#[derive(Debug, Clone)]
pub(crate) struct BesideAcknowledgement {
    applied: bool,
    is_active: bool,
    /// The number of programmed Services.
    number: usize,
    /// The programmed Services of each object, by its UID.
    services: BTreeMap<String, Vec<String>>,
    /// What is wrong, although everything is programmed.
    complaints: Vec<String>,
    error: Option<String>,
}

impl Acknowledgement for BesideAcknowledgement {
    const MODE: AgentMode = AgentMode::Beside;

    fn applied(&self) -> bool {
        self.applied && self.error.is_none()
    }

    /// The tables stay, and the next agent adopts them; unless it has tried and failed.
    fn inherits(&self) -> bool {
        self.error.is_none()
    }

    fn programmed(&self) -> Option<bool> {
        Some(self.applied())
    }

    fn ready(&self) -> ReadyCondition {
        let (ready, reason, message) = match (&self.error, self.applied()) {
            (Some(error), _) => (false, "NotProgrammed", error.clone()),
            (None, false) => {
                (false, "NotProgrammed", "the kernel does not have the current view yet".to_owned())
            }
            (None, true) => {
                let services = if self.number == 1 { "Service" } else { "Services" };
                let mut said = vec![format!("the agent serves {} {services}", self.number)];
                said.extend(self.complaints.iter().take(MOST_COMPLAINTS).cloned());
                if let more @ 1.. = self.complaints.len().saturating_sub(MOST_COMPLAINTS) {
                    said.push(format!("and {more} more"));
                }
                (true, "Current", said.join("; "))
            }
        };
        ReadyCondition { ready, reason, message }
    }

    fn ask_again(&self) -> Option<Duration> {
        None
    }

    fn complete_view(&self, object: &ObjectView, view: &mut AcknowledgedView) {
        view.received = self.applied();
        view.services = self.services.get(&object.uid).cloned().unwrap_or_default();
    }

    fn complete_status(&self, status: &mut IngressSourceNodeStatus) {
        status.active = self.is_active && self.error.is_none();
        status.served = Some(u32::try_from(self.number).unwrap_or(u32::MAX));
    }
}
