//! Records conditions: one per type. The transition time changes only with the status.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

#[cfg(test)]
mod tests;

/// The condition of this type, if recorded.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Replaces the condition of the same type. `new.last_transition_time` is the current time; it is
/// used only if the status changes, so recording is idempotent.
pub fn record(conditions: &mut Vec<Condition>, new: Condition) {
    match conditions.iter_mut().find(|old| old.type_ == new.type_) {
        Some(old) if old.status == new.status => {
            *old = Condition { last_transition_time: old.last_transition_time.clone(), ..new };
        }
        Some(old) => *old = new,
        None => conditions.push(new),
    }
}
