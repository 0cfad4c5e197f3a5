//! CEL rules shared by several types. Only the API server evaluates them.
//!
//! For a failed rule the API server reports the field's path but, up to about 1.35, only the type
//! instead of the value. Each message therefore quotes the value, says what is wrong and, if not
//! obvious, how to fix it.

use kube::core::{Message, Rule};

/// A rule whose message is a CEL expression, so that it can quote the rejected value.
pub(crate) fn rule(check: &str, message: &str) -> Rule {
    Rule::new(check).message(Message::Expression(message.to_owned()))
}

/// Requires one of the API server's named formats, which are the checks of built-in objects. The
/// message uses fixed text, because quoting the API server's own would exceed the schema's cost
/// budget.
fn format(name: &str, description: &str) -> Rule {
    rule(
        &format!("!format.{name}().validate(self).hasValue()"),
        &format!("'\"' + self + '\" is not {description}'"),
    )
}

/// A namespace, Service or pool name.
pub(crate) fn dns_label() -> Rule {
    format(
        "dns1123Label",
        "a DNS label: use lower-case letters, digits and dashes, with a letter or digit at both ends",
    )
}

/// An object name that may contain dots.
pub(crate) fn dns_subdomain() -> Rule {
    format(
        "dns1123Subdomain",
        "a DNS name: use lower-case letters, digits, dashes and dots, with a letter or digit at both ends",
    )
}

/// A label key with an optional prefix.
pub(crate) fn label_key() -> Rule {
    format("qualifiedName", "a label key: use [prefix/]name, as in node-role.kubernetes.io/ingress")
}

/// A label value.
pub(crate) fn label_value() -> Rule {
    format(
        "labelValue",
        "a label value: use letters, digits, dashes, dots and underscores, with a letter or digit at both ends",
    )
}
