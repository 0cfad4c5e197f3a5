//! Label selectors: reading them, and the schema that keeps unreadable ones out.
//!
//! kube evaluates selectors; what it would let pass and Kubernetes would not is refused here first. The schema refuses the
//! same when an object is applied, but an object may have been stored under another schema.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::core::{ParseExpressionError, Selector};
use thiserror::Error;

pub(crate) mod schema;

#[cfg(test)]
mod tests;

/// A selector that cannot be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadSelector {
    /// `In` and `NotIn` compare with values.
    #[error("{operator} on label {key:?} lists no values; add at least one, or use Exists or DoesNotExist")]
    NoValues {
        /// The label key of the requirement.
        key: String,
        /// The operator of the requirement.
        operator: String,
    },
    /// `Exists` and `DoesNotExist` look only at the key.
    #[error(
        "{operator} on label {key:?} lists values, which it does not look at; remove them or use In or NotIn"
    )]
    NeedlessValues {
        /// The label key of the requirement.
        key: String,
        /// The operator of the requirement.
        operator: String,
    },
    /// An operator that Kubernetes does not have.
    #[error("operator {operator:?} on label {key:?} is unknown; use In, NotIn, Exists or DoesNotExist")]
    UnknownOperator {
        /// The label key of the requirement.
        key: String,
        /// The operator of the requirement.
        operator: String,
    },
    /// Refused for a reason that the checks above do not know.
    #[error("the selector cannot be read: {0}")]
    Unreadable(String),
}

impl From<ParseExpressionError> for BadSelector {
    fn from(error: ParseExpressionError) -> Self {
        Self::Unreadable(error.0)
    }
}

/// Reads a selector into the form that can be matched against labels.
pub fn matcher(selector: &LabelSelector) -> Result<Selector, BadSelector> {
    selector.match_expressions.iter().flatten().try_for_each(check)?;
    Ok(selector.clone().try_into()?)
}

/// What kube leaves out when it reads a requirement: empty `values` make `NotIn` match everything there.
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
