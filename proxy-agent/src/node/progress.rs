//! The interface between the report and the mode. The report asks how far this node has come with
//! a view. The mode answers, and fills in the status fields that only it knows.

use std::time::Duration;

use isp_api::node::{AcknowledgedView, AgentMode, IngressSourceNodeStatus};
use isp_api::view::ObjectView;

use super::view::EpochView;

/// Follows how far the mode has applied the node's view.
pub(crate) trait Progress: Send + Sync + 'static {
    type Acknowledgement: Acknowledgement;

    /// Waits until [`Progress::acknowledge`] may have another answer. Cancel safe.
    fn changed(&mut self) -> impl Future<Output = ()> + Send;

    /// Says how far this node has come with the view.
    fn acknowledge(&mut self, current: &EpochView) -> impl Future<Output = Self::Acknowledgement> + Send;
}

/// How far this node has come with the view of one epoch.
pub(crate) trait Acknowledgement: Send + Sync {
    const MODE: AgentMode;

    /// Says whether the node has taken over the view.
    fn applied(&self) -> bool;

    /// Says whether the acknowledgement of the agent before this one may still be true, while this
    /// one has not applied the view yet.
    fn inherits(&self) -> bool;

    /// Says whether the kernel's rules match the view; `None` if the mode cannot tell.
    fn programmed(&self) -> Option<bool>;

    /// Returns the condition `Ready` of a node without an object in doubt.
    fn ready(&self) -> ReadyCondition;

    /// Returns how soon to ask again although nothing was announced.
    fn ask_again(&self) -> Option<Duration>;

    /// Sets the mode's own fields of an object's view. The report does not call it for an object in
    /// doubt.
    fn complete_view(&self, object: &ObjectView, view: &mut AcknowledgedView);

    /// Sets the mode's own fields of the status, apart from its views.
    fn complete_status(&self, status: &mut IngressSourceNodeStatus);
}

/// The condition `Ready`, without its times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadyCondition {
    pub(crate) ready: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}
