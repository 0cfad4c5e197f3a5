//! How a condition is recorded: one per type, and its transition time moves only when its status does.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

#[cfg(test)]
mod tests;

/// The condition of a type, if it has been recorded.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Records `new` in the place of the condition of its type. `new.last_transition_time` is the present; it is used only
/// when the status changes, so that recording the same thing twice changes nothing.
pub fn record(conditions: &mut Vec<Condition>, new: Condition) {
    match conditions.iter_mut().find(|old| old.type_ == new.type_) {
        Some(old) if old.status == new.status => {
            *old = Condition { last_transition_time: old.last_transition_time.clone(), ..new };
        }
        Some(old) => *old = new,
        None => conditions.push(new),
    }
}
