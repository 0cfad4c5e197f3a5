//! What an agent has not acknowledged yet. `status`, `explain-node` and `doctor` share it.

use isp_api::node::AcknowledgedView;
use isp_api::view::View;

#[cfg(test)]
mod tests;

/// The first reason why the node does not work with the view that it should have of an object's
/// Services, at this generation of the object. None: it does.
///
/// A node that may see everything owes no acknowledgement: only a narrower view is a fault there.
pub(crate) fn lag(acknowledged: Option<&AcknowledgedView>, wanted: View, generation: i64) -> Option<String> {
    let Some(view) = acknowledged else {
        return (wanted != View::Full).then(|| "the agent has not read the object yet".to_owned());
    };
    if wanted == View::Full && view.view == View::Full {
        return None;
    }
    if view.generation != generation {
        return Some(format!(
            "the agent works with generation {} of the object, not {generation}",
            view.generation
        ));
    }
    if view.view != wanted {
        return Some(format!("the node has view {:?}, not {wanted:?}", view.view));
    }
    if !view.relisted {
        return Some("kube-proxy has not listed its Services again yet".to_owned());
    }
    (view.programmed == Some(false)).then(|| "kube-proxy has not updated the kernel's rules yet".to_owned())
}
