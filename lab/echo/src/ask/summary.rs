//! The summary of all requests.

use serde::Serialize;

use super::failure::Failure;

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    pub(super) sent: u64,
    pub(super) answered: u64,
    failed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_error: Option<String>,
}

impl Summary {
    pub(super) fn failed(&mut self, failure: &Failure) {
        self.failed += 1;
        self.first_error.get_or_insert_with(|| failure.to_string());
    }

    pub(super) fn all_answered(&self) -> bool {
        self.sent > 0 && self.answered == self.sent
    }

    /// The summary as one line of JSON.
    pub(super) fn line(&self) -> String {
        serde_json::json!(self).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_kept() {
        let mut summary = Summary { sent: 3, answered: 1, ..Summary::default() };
        summary.failed(&Failure::TimedOut);
        summary.failed(&Failure::Refused(String::new()));
        assert!(!summary.all_answered());
        assert_eq!(summary.line(), r#"{"answered":1,"failed":2,"firstError":"timed out","sent":3}"#);
    }

    #[test]
    fn nothing_asked_is_no_success() {
        assert!(!Summary::default().all_answered());
        assert!(Summary { sent: 2, answered: 2, ..Summary::default() }.all_answered());
    }
}
