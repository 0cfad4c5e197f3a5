//! How lines are laid out and lists are cut, the same in every command.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::Selector;

/// Where what a field says begins.
const INDENT: usize = 13;

/// A block of lines with a name each. Lines of one field follow each other; its name stands before the first.
#[derive(Default)]
pub(crate) struct Block(pub(crate) String);

impl Block {
    pub(crate) fn headed(line: &str) -> Self {
        Self(format!("{line}\n"))
    }

    pub(crate) fn field(&mut self, name: &str, lines: impl IntoIterator<Item = String>) {
        for (place, line) in lines.into_iter().enumerate() {
            let mut head = if place == 0 { format!("  {name}") } else { String::new() };
            if head.len() >= INDENT {
                self.0.push_str(&head);
                self.0.push('\n');
                head.clear();
            }
            self.0.push_str(format!("{head:INDENT$}{line}").trim_end());
            self.0.push('\n');
        }
    }
}

/// The first ones, and how many there are beside them.
pub(crate) fn cut(mut lines: Vec<String>, most: usize, more: &str) -> Vec<String> {
    if lines.len() > most {
        let left = lines.len() - most;
        lines.truncate(most);
        lines.push(format!("and {left} more{more}"));
    }
    lines
}

/// `1 endpoint`, `2 endpoints`.
pub(crate) fn count(number: impl Into<u64>, thing: &str) -> String {
    let number = number.into();
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// A selector of nodes as `kubectl get -l` takes it.
pub(crate) fn selector(selector: &LabelSelector) -> String {
    match Selector::try_from(selector.clone()) {
        Ok(selector) if selector.selects_all() => "every node".to_owned(),
        Ok(selector) => selector.to_string(),
        Err(error) => format!("unreadable: {error}"),
    }
}
