//! Label selectors: parsing, and the schema that rejects invalid ones.
//!
//! kube evaluates selectors but accepts some that Kubernetes rejects; these are rejected here
//! first. The schema rejects them, too, but an object may have been stored under another schema.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::core::{ParseExpressionError, Selector};
use thiserror::Error;

pub(crate) mod schema;

#[cfg(test)]
mod tests;

/// A selector that cannot be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadSelector {
    /// `In` and `NotIn` require values.
    #[error("{operator} on label {key:?} lists no values; add at least one, or use Exists or DoesNotExist")]
    NoValues {
        /// The label key of the requirement.
        key: String,
        /// The operator of the requirement.
        operator: String,
    },
    /// `Exists` and `DoesNotExist` take no values.
    #[error("{operator} on label {key:?} lists values, which it ignores; remove them, or use In or NotIn")]
    NeedlessValues {
        /// The label key of the requirement.
        key: String,
        /// The operator of the requirement.
        operator: String,
    },
    /// The operator does not exist in Kubernetes.
    #[error("operator {operator:?} on label {key:?} is unknown; use In, NotIn, Exists or DoesNotExist")]
    UnknownOperator {
        /// The label key of the requirement.
        key: String,
        /// The operator of the requirement.
        operator: String,
    },
    /// kube rejected it for another reason.
    #[error("the selector cannot be read: {0}")]
    Unreadable(String),
}

impl From<ParseExpressionError> for BadSelector {
    fn from(error: ParseExpressionError) -> Self {
        Self::Unreadable(error.0)
    }
}

/// Parses a selector so that it can be matched against labels.
pub fn matcher(selector: &LabelSelector) -> Result<Selector, BadSelector> {
    selector.match_expressions.iter().flatten().try_for_each(check)?;
    Ok(selector.clone().try_into()?)
}

/// Checks that kube omits: it lets `NotIn` without values match everything.
fn check(requirement: &LabelSelectorRequirement) -> Result<(), BadSelector> {
    let key = requirement.key.clone();
    let operator = requirement.operator.clone();
    let has_values = requirement.values.as_ref().is_some_and(|values| !values.is_empty());
    match (requirement.operator.as_str(), has_values) {
        ("In" | "NotIn", true) | ("Exists" | "DoesNotExist", false) => Ok(()),
        ("In" | "NotIn", false) => Err(BadSelector::NoValues { key, operator }),
        ("Exists" | "DoesNotExist", true) => Err(BadSelector::NeedlessValues { key, operator }),
        _ => Err(BadSelector::UnknownOperator { key, operator }),
    }
}
