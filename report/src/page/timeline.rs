//! The Events, in the order in which they happened.

use std::fmt::Write;

use super::markup::{badge, escape};
use crate::model::Report;

pub(super) fn write(page: &mut String, report: &Report) {
    page.push_str("<section id=\"timeline\"><h2>Timeline</h2>\n");
    if report.timeline.is_empty() {
        page.push_str("<p>The cluster has no Events about these objects and Services. It keeps Events for an hour by default.</p></section>\n");
        return;
    }
    page.push_str("<ol class=\"timeline\">\n");
    let mut day = "";
    for event in &report.timeline {
        let (date, clock) = event.time.split_once('T').unwrap_or(("", &event.time));
        if date != day {
            let _ = writeln!(page, "<li class=\"day\">{}</li>", escape(date));
            day = date;
        }
        let kind = if event.warning { badge("unreachable", "!", "Warning") } else { String::new() };
        let times = if event.count > 1 { format!(" ({} times)", event.count) } else { String::new() };
        let _ = writeln!(
            page,
            "<li class=\"{}\"><time datetime=\"{}\">{}</time><div><strong>{}</strong> {kind} \
             <span class=\"object\">{}</span><span class=\"line\">{}{times}</span></div></li>",
            if event.warning { "warning" } else { "normal" },
            escape(&event.time),
            escape(clock.trim_end_matches('Z')),
            escape(&event.reason),
            escape(&event.object),
            escape(&event.message)
        );
    }
    page.push_str("</ol></section>\n");
}
