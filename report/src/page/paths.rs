//! The table of all paths: what the drawing shows, for readers without a picture or a script.

use std::fmt::Write;

use super::label::Labels;
use super::markup::{badge, escape};
use crate::model::{Journey, Report};

pub(super) fn write(page: &mut String, report: &Report) {
    page.push_str("<section id=\"paths\" tabindex=\"-1\"><h2>All paths</h2>\n");
    if report.paths.is_empty() {
        page.push_str("<p>No Service is exposed.</p></section>\n");
        return;
    }
    let labels = Labels::new(&report.nodes);
    for service in &report.services {
        let mut paths =
            report.paths.iter().enumerate().filter(|(_, path)| path.service == service.name).peekable();
        if paths.peek().is_none() {
            continue;
        }
        let _ = write!(
            page,
            "<div class=\"scroll\" role=\"group\" aria-label=\"Paths to {name}\" tabindex=\"0\"><table><caption>{name}</caption>\
             <thead><tr><th scope=\"col\">From</th><th scope=\"col\">To</th>",
            name = escape(&service.name)
        );
        for stage in &report.stages {
            let _ = write!(page, "<th scope=\"col\">{}</th>", escape(&stage.label));
        }
        page.push_str("<th scope=\"col\" class=\"script screen\" hidden>Trace</th></tr></thead>\n<tbody>\n");
        for (number, path) in paths {
            let (from, to) = (labels.source(&path.from), labels.destination(&path.to));
            let _ = write!(
                page,
                "<tr><th scope=\"row\">{}<span class=\"address\">{}</span></th><td>{}</td>",
                escape(&from),
                escape(&path.from.address),
                escape(&to)
            );
            for journey in &path.journeys {
                cell(page, journey);
            }
            let _ = writeln!(
                page,
                "<td class=\"script screen\" hidden><button type=\"button\" class=\"trace\" data-path=\"{number}\" \
                 aria-label=\"Trace: {} to {}\">Trace</button></td></tr>",
                escape(&from),
                escape(&to)
            );
        }
        page.push_str("</tbody></table></div>\n");
    }
    page.push_str("</section>\n");
}

/// The result of a path in one stage, and what changed the address.
fn cell(page: &mut String, journey: &Journey) {
    let outcome = journey.outcome;
    let _ = write!(page, "<td>{}", badge(outcome.key(), outcome.mark(), outcome.label()));
    let _ = write!(page, "<span class=\"line\">{}</span></td>", escape(&journey.line));
}
