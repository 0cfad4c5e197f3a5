//! One checked line: a mark, a sentence, and what helps. Sections group them.

use schemars::JsonSchema;
use serde::Serialize;

use crate::doctor::finding::{Code, Finding, Severity, Subject};
use crate::doctor::runbook;
use crate::sarif;

/// The mark of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// The source IP is lost, a policy misjudges, or that cannot be told.
    Failed,
    /// Worth knowing before the project is installed, or not known.
    Notice,
    Passed,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub(super) struct Line {
    /// The name of the check, which stays the same.
    pub(super) check: &'static str,
    pub(super) state: State,
    /// The object that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) subject: Option<Subject>,
    /// The sentence.
    #[serde(rename = "line")]
    pub(super) text: String,
    /// Further facts, and what helps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) details: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<Code>,
    /// The address of the code's section in the runbook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) runbook: Option<String>,
}

impl Line {
    fn new(check: &'static str, state: State, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { check, state, subject: None, text, details: Vec::new(), code: None, runbook: None }
    }

    pub(super) fn passed(check: &'static str, line: impl Into<String>) -> Self {
        Self::new(check, State::Passed, line)
    }

    pub(super) fn notice(check: &'static str, line: impl Into<String>) -> Self {
        Self::new(check, State::Notice, line)
    }

    pub(super) fn failed(check: &'static str, line: impl Into<String>) -> Self {
        Self::new(check, State::Failed, line)
    }

    /// A finding of doctor. An error or a warning fails.
    pub(super) fn of_finding(check: &'static str, finding: &Finding) -> Self {
        let state = if finding.severity == Severity::Note { State::Notice } else { State::Failed };
        let line = Self::new(check, state, format!("{}: {}", finding.subject, finding.line));
        line.about(finding.subject.clone()).coded(finding.code).detail(finding.reason.clone())
    }

    #[must_use]
    pub(super) fn about(mut self, subject: Subject) -> Self {
        self.subject = Some(subject);
        self
    }

    #[must_use]
    pub(super) fn coded(mut self, code: Code) -> Self {
        self.code = Some(code);
        self.runbook = Some(runbook::address(code));
        self
    }

    #[must_use]
    pub(super) fn detail(mut self, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        if !detail.is_empty() {
            self.details.push(detail);
        }
        self
    }

    /// The line as a result of SARIF. None: it passed, or has no code.
    pub(super) fn result(&self) -> Option<sarif::Finding> {
        let severity = match self.state {
            State::Passed => return None,
            State::Notice => Severity::Note,
            State::Failed => Severity::Error,
        };
        let subject = self.subject.clone().unwrap_or_else(Subject::cluster);
        let parts: Vec<&str> =
            [self.text.as_str()].into_iter().chain(self.details.iter().map(String::as_str)).collect();
        Some(sarif::Finding { code: self.code?, severity, subject, message: parts.join("\n") })
    }
}

/// Lines about one topic.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) checks: Vec<Line>,
}

impl Section {
    pub(super) fn new(title: &'static str, checks: Vec<Line>) -> Self {
        Self { title, checks }
    }

    /// The same with the worst first, for sections that may be long.
    pub(super) fn sorted(title: &'static str, mut checks: Vec<Line>) -> Self {
        checks.sort_by_key(|line| line.state);
        Self { title, checks }
    }
}
