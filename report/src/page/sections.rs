//! The order of the page, and the parts that the script fills.

use std::fmt::Write;

use super::markup::{badge, escape};
use super::{cluster, findings, paths, summary, timeline};
use crate::model::{Outcome, Report};

/// Writes everything between the body's tags except data and script.
pub(super) fn write(page: &mut String, report: &Report) {
    head(page, report);
    page.push_str("<main id=\"report\">\n");
    summary::write(page, report);
    drawing(page, report);
    paths::write(page, report);
    findings::policies(page, report);
    findings::findings(page, report);
    cluster::services(page, report);
    cluster::nodes(page, report);
    timeline::write(page, report);
    gaps(page, report);
    page.push_str("</main>\n");
    page.push_str(
        "<footer><p>A path stands for all nodes of a kind that behave alike. Hops marked \
         <em>assumed</em> rest on the usual behaviour of a network, which the Kubernetes API does not show.</p></footer>\n\
         <dialog id=\"panel\" aria-labelledby=\"panel-title\"></dialog>\n",
    );
}

fn head(page: &mut String, report: &Report) {
    let (title, origin, time) = (escape(&report.title), escape(&report.origin), escape(&report.time));
    // Strings are written without errors.
    let _ = write!(
        page,
        "<a class=\"skip\" href=\"#paths\">Skip to the table of paths</a>\n\
         <header>\n<div><h1>{title}</h1>\n\
         <p class=\"meta\">{origin} <span aria-hidden=\"true\">·</span> read at <time datetime=\"{time}\">{time}</time>\
         <span id=\"live\" role=\"status\"></span></p></div>\n\
         <button type=\"button\" id=\"theme\" class=\"script\" hidden>Dark</button>\n</header>\n"
    );
}

/// The drawing is the script's. Without it, this section is hidden.
fn drawing(page: &mut String, report: &Report) {
    if report.paths.is_empty() {
        return;
    }
    page.push_str(
        "<section id=\"drawing\" class=\"script\" aria-labelledby=\"drawing-title\" hidden>\n\
         <h2 id=\"drawing-title\">Paths through the cluster</h2>\n<div class=\"controls\">\n\
         <label>Service <select id=\"service\">",
    );
    for service in &report.services {
        let name = escape(&service.name);
        let _ = write!(page, "<option value=\"{name}\">{name}</option>");
    }
    page.push_str("</select></label>\n");
    if report.stages.len() > 1 {
        page.push_str("<fieldset id=\"stages\"><legend>State</legend>");
        for (number, stage) in report.stages.iter().enumerate() {
            let checked = if number == 0 { " checked" } else { "" };
            let _ = write!(
                page,
                "<label><input type=\"radio\" name=\"stage\" value=\"{number}\"{checked}> {}</label>",
                escape(&stage.label)
            );
        }
        page.push_str("</fieldset>\n");
    }
    page.push_str("</div>\n<ul class=\"legend\" aria-label=\"Legend\">");
    for outcome in Outcome::ALL {
        let _ = write!(page, "<li>{}</li>", badge(outcome.key(), outcome.mark(), outcome.label()));
    }
    page.push_str(
        "</ul>\n<p class=\"hint\">Select a path for its trace, hop by hop. Select a group of nodes for their names.</p>\n\
         <div id=\"canvas\"></div>\n</section>\n",
    );
}

fn gaps(page: &mut String, report: &Report) {
    if report.gaps.is_empty() {
        return;
    }
    page.push_str("<section id=\"gaps\"><h2>What this report cannot tell</h2><ul>\n");
    for gap in &report.gaps {
        let _ = writeln!(page, "<li>{}</li>", escape(gap));
    }
    page.push_str("</ul></section>\n");
}
