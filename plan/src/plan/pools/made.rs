//! Builds the DaemonSets of a pool, and compares them with the existing ones.

use isp_api::names::{ACCOUNT_ANNOTATION, RETAINED_ANNOTATION};
use k8s_openapi::api::apps::v1::DaemonSet as DaemonSetObject;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::super::accounts::Accounts;
use super::super::kube_proxy::Problem;
use super::super::rollout::{Origin, Source};
use super::super::snapshot::Snapshot;
use super::{account_of, is_retained, is_to_be_retained};
use crate::build::agents::of_revision;
use crate::build::images::images_of;
use crate::observe::key;

pub(in crate::plan) struct Made<'a> {
    pub(in crate::plan) origin: Origin<'a>,
    /// A digest of the agents' DaemonSet.
    pub(in crate::plan) revision: String,
    pub(super) agents: DaemonSetObject,
    /// Whether the agents' DaemonSet exists as desired.
    pub(in crate::plan) present: bool,
    pub(super) images: DaemonSetObject,
    /// Whether the DaemonSet that prepulls the images exists as desired.
    pub(in crate::plan) images_present: bool,
}

pub(super) fn make<'a>(
    snapshot: &Snapshot<'a>,
    accounts: &Accounts,
    pool: &str,
    source: Source,
    members: &[usize],
) -> Result<Made<'a>, Problem> {
    let origin = Origin::find(snapshot.cluster, &source)?;
    if let Some(contest) = source.object.and_then(|lead| origin.contest(snapshot, &snapshot.objects[lead])) {
        return Err(contest);
    }
    let mut base = origin.daemon_set(snapshot, pool)?;
    // Without a usable account, keep the annotation: it is part of the revision.
    let account = accounts.uid(snapshot.cluster, origin.namespace()).or_else(|| account_of(snapshot, pool));
    let of_pods = base.spec.template.metadata.get_or_insert_default().annotations.get_or_insert_default();
    of_pods.insert(ACCOUNT_ANNOTATION.to_owned(), account.unwrap_or_default().to_owned());
    let digest = Sha256::digest(json!(base).to_string());
    let revision = digest.iter().take(5).fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let mut agents = of_revision(base, &revision);
    let images = images_of(&agents, pool, &revision);
    let annotations = agents.metadata.annotations.get_or_insert_default();
    annotations.extend(origin.record());
    let retained = is_to_be_retained(snapshot, members);
    if retained {
        annotations.insert(RETAINED_ANNOTATION.to_owned(), source.name);
    }
    let there = |wanted: &DaemonSetObject| {
        let there = snapshot.cluster.daemon_sets.get(&key(&wanted.metadata)).filter(|set| set.made)?;
        covers(&json!(there.object), &json!(wanted)).then_some(there)
    };
    let present = there(&agents).is_some_and(|there| is_retained(snapshot, there) == retained);
    let images_present = there(&images).is_some();
    Ok(Made { origin, revision, agents, present, images, images_present })
}

/// Whether the existing object contains everything desired. The API server adds defaults and omits
/// zero values.
pub(in crate::plan) fn covers(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => wanted.iter().all(|(name, wanted)| {
            there.get(name).map_or_else(|| says_nothing(wanted), |there| covers(there, wanted))
        }),
        (Value::Array(there), Value::Array(wanted)) => {
            there.len() == wanted.len()
                && there.iter().zip(wanted).all(|(there, wanted)| covers(there, wanted))
        }
        (there, wanted) => there == wanted,
    }
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(says_nothing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_may_be_added_and_what_says_nothing_left_out_but_nothing_else_may_differ() {
        let wanted = json!({"a": 1, "quiet": false, "empty": {"list": []}, "items": [{"x": "y"}]});
        for (there, same) in [
            (json!({"a": 1, "items": [{"x": "y", "default": true}], "more": 2}), true),
            (json!({"a": 2, "items": [{"x": "y"}]}), false),
            (json!({"a": 1, "items": []}), false),
            (json!({"a": 1, "items": [{"x": "y"}, {"x": "z"}]}), false),
            (json!({"a": 1, "items": [{"x": "y"}], "quiet": true}), false),
            (json!({"items": [{"x": "y"}]}), false),
        ] {
            assert_eq!(covers(&there, &wanted), same, "{there}");
        }
    }
}
