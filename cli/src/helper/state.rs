//! How far a helper is, from its status.

use k8s_openapi::api::core::v1::Pod;

/// Reasons of waiting that waiting does not end.
const STUCK: [&str; 6] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
];

#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It may still succeed.
    Waiting(String),
    /// It runs, and its readiness probe has succeeded.
    Ready,
    /// It will not start.
    Stuck(String),
    /// It has ended without a result.
    Failed(String),
    Succeeded,
}

impl State {
    pub(super) fn of(pod: &Pod) -> Self {
        let Some(status) = &pod.status else { return Self::Waiting("it was not started".to_owned()) };
        let container = status.container_statuses.iter().flatten().next();
        let state = container.and_then(|container| container.state.as_ref());
        let join = |reason: Option<&String>, message: Option<&String>| {
            let words: Vec<&str> = [reason, message].into_iter().flatten().map(|word| word.trim()).collect();
            words.join(": ")
        };
        match status.phase.as_deref() {
            Some("Succeeded") => return Self::Succeeded,
            Some("Failed") => {
                let ended = state.and_then(|state| state.terminated.as_ref());
                let said = ended.and_then(|ended| ended.message.as_ref());
                let said = said.map(|text| text.trim().trim_start_matches("error: ").to_owned());
                return Self::Failed(
                    said.unwrap_or_else(|| join(status.reason.as_ref(), status.message.as_ref())),
                );
            }
            _ => {}
        }
        let mut conditions = status.conditions.iter().flatten();
        if conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True") {
            return Self::Ready;
        }
        match state.and_then(|state| state.waiting.as_ref()) {
            Some(waiting) => {
                let words = join(waiting.reason.as_ref(), waiting.message.as_ref());
                let is_stuck = waiting.reason.as_deref().is_some_and(|reason| STUCK.contains(&reason));
                if is_stuck { Self::Stuck(words) } else { Self::Waiting(words) }
            }
            None => Self::Waiting(status.phase.clone().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests;
