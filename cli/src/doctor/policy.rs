//! Istio's `AuthorizationPolicy`, as far as it compares addresses.

use serde::Deserialize;
use serde_json::Value;

use super::judgement::{Action, Field};
use super::mesh::{Selector, TargetRef};
use super::ranges::Range;

#[cfg(test)]
mod tests;

/// The spec of an `AuthorizationPolicy`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AuthorizationPolicy {
    action: Option<String>,
    pub(crate) selector: Option<Selector>,
    target_ref: Option<TargetRef>,
    target_refs: Vec<TargetRef>,
    rules: Vec<Rule>,
    /// Whether it only logs its decisions.
    #[serde(skip)]
    pub(crate) dry_run: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Rule {
    from: Vec<From>,
    to: Vec<Value>,
    when: Vec<When>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct From {
    source: Source,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(clippy::struct_field_names, reason = "Istio calls them so")]
struct Source {
    ip_blocks: Vec<String>,
    not_ip_blocks: Vec<String>,
    remote_ip_blocks: Vec<String>,
    not_remote_ip_blocks: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct When {
    key: String,
    values: Vec<String>,
    not_values: Vec<String>,
}

/// A condition on addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    /// Its name in the policy.
    pub(crate) name: &'static str,
    pub(crate) field: Field,
    pub(crate) negated: bool,
    pub(crate) ranges: Vec<Range>,
    /// The entries as text.
    pub(crate) texts: Vec<String>,
    /// The first entry that is not a range.
    pub(crate) unreadable: Option<String>,
}

impl Use {
    /// None if there is no entry.
    pub(crate) fn of(name: &'static str, field: Field, negated: bool, texts: &[String]) -> Option<Self> {
        if texts.is_empty() {
            return None;
        }
        let read = |text: &String| text.trim().parse::<Range>();
        let unreadable = texts.iter().find(|text| read(text).is_err()).cloned();
        let ranges = texts.iter().filter_map(|text| read(text).ok()).collect();
        Some(Self { name, field, negated, ranges, texts: texts.to_vec(), unreadable })
    }
}

impl AuthorizationPolicy {
    pub(crate) fn action(&self) -> Action {
        match self.action.as_deref() {
            _ if self.dry_run => Action::Audit,
            Some("DENY") => Action::Deny,
            Some("AUDIT") => Action::Audit,
            Some("CUSTOM") => Action::Custom,
            _ => Action::Allow,
        }
    }

    pub(crate) fn targets(&self) -> Vec<&TargetRef> {
        self.target_refs.iter().chain(&self.target_ref).collect()
    }

    /// Alternatives, each a set of conditions on addresses that must all hold. Alternatives without
    /// such a condition are left out. Empty if a rule matches every client, because then no address
    /// decides.
    pub(crate) fn alternatives(&self) -> Vec<Vec<Use>> {
        if self.rules.iter().any(Rule::matches_everybody) {
            return Vec::new();
        }
        let alternatives = self.rules.iter().flat_map(Rule::alternatives);
        alternatives.filter(|conditions| !conditions.is_empty()).collect()
    }
}

impl Rule {
    fn matches_everybody(&self) -> bool {
        self.from.is_empty() && self.to.is_empty() && self.when.is_empty()
    }

    fn alternatives(&self) -> Vec<Vec<Use>> {
        let when: Vec<Use> = self.when.iter().flat_map(When::uses).collect();
        if self.from.is_empty() {
            return vec![when];
        }
        let sources = self.from.iter().map(|from| from.source.uses());
        sources.map(|source| source.into_iter().chain(when.iter().cloned()).collect()).collect()
    }
}

impl Source {
    fn uses(&self) -> Vec<Use> {
        let fields = [
            Use::of("ipBlocks", Field::Peer, false, &self.ip_blocks),
            Use::of("notIpBlocks", Field::Peer, true, &self.not_ip_blocks),
            Use::of("remoteIpBlocks", Field::Remote, false, &self.remote_ip_blocks),
            Use::of("notRemoteIpBlocks", Field::Remote, true, &self.not_remote_ip_blocks),
        ];
        fields.into_iter().flatten().collect()
    }
}

impl When {
    fn uses(&self) -> Vec<Use> {
        let (values, not_values, field) = match self.key.as_str() {
            "source.ip" => ("source.ip", "source.ip (notValues)", Field::Peer),
            "remote.ip" => ("remote.ip", "remote.ip (notValues)", Field::Remote),
            _ => return Vec::new(),
        };
        let uses =
            [Use::of(values, field, false, &self.values), Use::of(not_values, field, true, &self.not_values)];
        uses.into_iter().flatten().collect()
    }
}
