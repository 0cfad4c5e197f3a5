//! The policies that compare addresses, and the findings of `kubectl isp doctor`.

use std::fmt::Write;

use super::markup::{badge, escape};
use crate::model::{Report, Severity, Verdict};

pub(super) fn policies(page: &mut String, report: &Report) {
    page.push_str("<section id=\"policies\"><h2>Policies that compare addresses</h2>\n");
    if report.policies.is_empty() {
        page.push_str("<p>There is none.</p></section>\n");
        return;
    }
    page.push_str(
        "<div class=\"scroll\" role=\"group\" aria-label=\"Policies\" tabindex=\"0\"><table><thead><tr>\
         <th scope=\"col\">Policy</th><th scope=\"col\">Rule</th>",
    );
    for stage in &report.stages {
        let _ = write!(page, "<th scope=\"col\">{}</th>", escape(&stage.label));
    }
    page.push_str("</tr></thead><tbody>\n");
    for policy in &report.policies {
        let _ = write!(
            page,
            "<tr><th scope=\"row\">{}<span class=\"address\">{}</span></th><td>{}</td>",
            escape(&policy.name),
            escape(&policy.kind),
            escape(&policy.rule)
        );
        for judgement in &policy.judgements {
            let (class, mark, words) = verdict(judgement.verdict);
            let reason = escape(&judgement.reason);
            let _ =
                write!(page, "<td>{}<span class=\"line\">{reason}</span></td>", badge(class, mark, words));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div></section>\n");
}

fn verdict(verdict: Verdict) -> (&'static str, &'static str, &'static str) {
    match verdict {
        Verdict::Right => ("preserved", "\u{2713}", "Judges the client"),
        Verdict::FailsOpen => ("lost", "\u{2717}", "Fails open"),
        Verdict::FailsClosed => ("unreachable", "!", "Fails closed"),
        Verdict::Unknown => ("unclear", "?", "Unknown"),
    }
}

pub(super) fn findings(page: &mut String, report: &Report) {
    page.push_str("<section id=\"findings\"><h2>Findings</h2>\n");
    if report.findings.is_empty() {
        page.push_str("<p>There is none.</p></section>\n");
        return;
    }
    page.push_str("<ul class=\"findings\">\n");
    for finding in &report.findings {
        let (class, mark, words) = match finding.severity {
            Severity::Error => ("lost", "\u{2717}", "Error"),
            Severity::Warning => ("unreachable", "!", "Warning"),
            Severity::Note => ("dropped", "i", "Note"),
        };
        let _ = write!(
            page,
            "<li class=\"finding {class}\"><h3>{} <code>{}</code> {}</h3><p>{}</p>",
            badge(class, mark, words),
            escape(&finding.code),
            escape(&finding.subject),
            escape(&finding.line)
        );
        if !finding.reason.is_empty() {
            let _ = write!(page, "<p class=\"line\">{}</p>", escape(&finding.reason));
        }
        if !finding.remedy.is_empty() {
            page.push_str("<ul class=\"remedy\" aria-label=\"Remedy\">");
            for step in &finding.remedy {
                let _ = write!(page, "<li><code>{}</code></li>", escape(step));
            }
            page.push_str("</ul>");
        }
        page.push_str("</li>\n");
    }
    page.push_str("</ul></section>\n");
}
