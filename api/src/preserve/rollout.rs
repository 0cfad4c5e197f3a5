//! How fast the nodes are changed, and what happens if a wave fails.

use std::{borrow::Cow, fmt, str::FromStr};

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::rules;

#[cfg(test)]
mod tests;

/// The pace of a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Rollout {
    /// How many nodes of a pool are changed at the same time: a number, or a percentage of the
    /// pool's nodes, rounded up. At least 1 or 1%. The next wave starts when all agents of the
    /// previous one are ready and have acknowledged.
    pub max_unavailable: MaxUnavailable,

    /// Pauses the rollout: the current wave finishes, and no other wave starts.
    pub paused: bool,

    /// How long one wave may take, in seconds.
    #[schemars(range(min = 30, max = 86400))]
    pub progress_deadline_seconds: u32,

    /// What happens to a wave that misses its deadline. `RollBack`: its nodes return to the
    /// cluster's kube-proxy. `Pause`: the wave stays as it is, so that you can inspect it.
    pub on_failure: OnFailure,
}

impl Default for Rollout {
    fn default() -> Self {
        Self {
            max_unavailable: MaxUnavailable::Percent(10),
            paused: false,
            progress_deadline_seconds: 600,
            on_failure: OnFailure::RollBack,
        }
    }
}

/// What happens to a wave that misses its deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum OnFailure {
    /// Its nodes return to the cluster's kube-proxy.
    #[default]
    RollBack,
    /// It stays as it is.
    Pause,
}

/// How many nodes of a pool may be changed at the same time; at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "IntOrString", try_from = "IntOrString")]
pub enum MaxUnavailable {
    /// A number of nodes.
    Count(u16),
    /// A percentage of the pool, from 1 to 100.
    Percent(u8),
}

impl MaxUnavailable {
    /// The size of a wave in a pool of `nodes` nodes. At least one, so that the rollout makes
    /// progress.
    pub fn of(self, nodes: usize) -> usize {
        match self {
            Self::Count(count) => usize::from(count).max(1),
            Self::Percent(percent) => (nodes * usize::from(percent)).div_ceil(100).max(1),
        }
    }
}

/// A value of `maxUnavailable` that is not a number of nodes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("maxUnavailable {0} is neither a number of nodes from 1 to 65535 nor a percentage from 1% to 100%")]
pub struct BadMaxUnavailable(String);

impl TryFrom<IntOrString> for MaxUnavailable {
    type Error = BadMaxUnavailable;

    fn try_from(value: IntOrString) -> Result<Self, Self::Error> {
        match value {
            IntOrString::Int(count) => match u16::try_from(count) {
                Ok(count @ 1..) => Ok(Self::Count(count)),
                _ => Err(BadMaxUnavailable(count.to_string())),
            },
            IntOrString::String(text) => text.parse(),
        }
    }
}

impl FromStr for MaxUnavailable {
    type Err = BadMaxUnavailable;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_suffix('%').map(str::parse) {
            Some(Ok(percent @ 1..=100)) => Ok(Self::Percent(percent)),
            _ => Err(BadMaxUnavailable(format!("{text:?}"))),
        }
    }
}

impl From<MaxUnavailable> for IntOrString {
    fn from(value: MaxUnavailable) -> Self {
        match value {
            MaxUnavailable::Count(count) => Self::Int(count.into()),
            MaxUnavailable::Percent(_) => Self::String(value.to_string()),
        }
    }
}

impl fmt::Display for MaxUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl JsonSchema for MaxUnavailable {
    fn schema_name() -> Cow<'static, str> {
        "MaxUnavailable".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "maxLength": 4,
            "x-kubernetes-validations": [rules::rule(
                "type(self) == int ? self >= 1 && self <= 65535 : self.matches('^(100|[1-9][0-9]?)%$')",
                "'\"' + string(self) + '\" is not a valid number of nodes: use a number from 1 to 65535 \
                 or a percentage from \"1%\" to \"100%\"; to stop the rollout, use paused'",
            )],
        })
    }
}
