//! CEL rules that several types share. The API server runs them; nothing here does.
//!
//! For a failed rule the server reports the path of the field but, up to 1.35 or so, only the type in the place of the value.
//! So each message quotes the value itself, says what is wrong with it and, where that is not obvious, what to do.

use kube::core::{Message, Rule};

/// A rule whose message is itself a CEL expression, so that it can quote what it rejects.
pub(crate) fn rule(check: &str, message: &str) -> Rule {
    Rule::new(check).message(Message::Expression(message.to_owned()))
}

/// A value that one of the API server's named formats accepts: the same code that checks built-in objects. The message
/// describes the format in fixed words, because quoting the server's own would not fit the cost budget of the schema.
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
