//! What an agent has not acknowledged yet. `status`, `explain-node` and `doctor` share it.

use isp_api::IngressSourcePreserve;
use isp_api::node::AcknowledgedView;
use isp_api::preserve::{Mode, ServiceState};
use isp_api::view::View;

use crate::text::few;

#[cfg(test)]
mod tests;

/// Mode Beside: that the agent does not serve Services of the object which it has to. Every
/// kube-proxy skips a preserved Service, so the agent of each node has to serve it.
pub(crate) fn unserved(object: &IngressSourcePreserve, acknowledged: &AcknowledgedView) -> Option<String> {
    let services = object.status.iter().flat_map(|status| &status.services);
    let preserved = services.filter(|service| service.state == ServiceState::Preserved);
    let names = preserved.map(|service| format!("{}/{}", service.namespace, service.name));
    let lacking: Vec<String> = names.filter(|name| !acknowledged.services.contains(name)).collect();
    let is_lacking = object.spec.mode == Mode::Beside && !lacking.is_empty();
    is_lacking.then(|| format!("the agent does not serve {}", few(&lacking)))
}

/// The view that a node should have of the Services of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The mode of the object.
    pub(crate) mode: Mode,
    pub(crate) view: View,
    /// The current generation of the object.
    pub(crate) generation: i64,
}

impl Wanted {
    /// Whether the node owes an acknowledgement. In mode Filter, a node that may see everything
    /// needs no agent. In mode Beside, the agent of each node serves the Services.
    pub(crate) fn is_owed(self) -> bool {
        match self.mode {
            Mode::Filter => self.view != View::Full,
            Mode::Beside => true,
        }
    }

    /// Whether the acknowledgement is about this view, at this generation.
    pub(crate) fn is_current(self, view: &AcknowledgedView) -> bool {
        view.generation == self.generation && view.view == self.view
    }

    /// The first reason why the node does not work with this view. None: it does.
    pub(crate) fn lag(self, acknowledged: Option<&AcknowledgedView>) -> Option<String> {
        let Some(view) = acknowledged else {
            return self.is_owed().then(|| "the agent has not read the object yet".to_owned());
        };
        if !self.is_owed() && view.view == View::Full {
            return None;
        }
        if view.generation != self.generation {
            return Some(format!(
                "the agent works with generation {} of the object, not {}",
                view.generation, self.generation
            ));
        }
        if view.view != self.view {
            return Some(format!("the node has view {:?}, not {:?}", view.view, self.view));
        }
        if !view.received {
            let reason = match self.mode {
                Mode::Filter => "kube-proxy has not listed its Services again yet",
                Mode::Beside => "the agent does not have the view yet",
            };
            return Some(reason.to_owned());
        }
        (view.programmed == Some(false)).then(|| {
            let reason = match self.mode {
                Mode::Filter => "kube-proxy has not updated the kernel's rules yet",
                Mode::Beside => "the agent has not committed its rules to the kernel yet",
            };
            reason.to_owned()
        })
    }
}
