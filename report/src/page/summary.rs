//! The result in one sentence per stage, and the numbers behind it.

use std::fmt::Write;

use super::markup::{badge, escape};
use crate::model::{Outcome, Report, Severity};

pub(super) fn write(page: &mut String, report: &Report) {
    page.push_str(
        "<section id=\"summary\" aria-labelledby=\"summary-title\"><h2 id=\"summary-title\">Summary</h2>\n",
    );
    for (number, stage) in report.stages.iter().enumerate() {
        let counts = Outcome::ALL.map(|outcome| (outcome, count(report, number, outcome)));
        let _ = write!(
            page,
            "<div class=\"stage\"><h3>{}</h3><p class=\"verdict\">{}</p>",
            escape(&stage.label),
            escape(&sentence(&counts))
        );
        page.push_str("<ul class=\"counts\">");
        for (outcome, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            let words = format!("{count} {}", outcome.label().to_lowercase().replace("ip", "IP"));
            let _ = write!(page, "<li>{}</li>", badge(outcome.key(), outcome.mark(), &words));
        }
        let _ = writeln!(page, "</ul><p class=\"basis\">{}</p></div>", escape(&stage.basis));
    }
    let (nodes, services) = (report.nodes.len(), report.services.len());
    let of = |severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
    let _ = writeln!(
        page,
        "<p class=\"totals\">{nodes} {}, {services} {}, {} {}. <a href=\"#findings\">{} {}, {} {}</a>.</p></section>",
        plural(nodes, "node"),
        plural(services, "Service"),
        report.paths.len(),
        plural(report.paths.len(), "path"),
        of(Severity::Error),
        plural(of(Severity::Error), "error"),
        of(Severity::Warning),
        plural(of(Severity::Warning), "warning"),
    );
}

fn count(report: &Report, stage: usize, outcome: Outcome) -> usize {
    let journeys = report.paths.iter().filter_map(|path| path.journeys.get(stage));
    journeys.filter(|journey| journey.outcome == outcome).count()
}

/// The result in one sentence.
fn sentence(counts: &[(Outcome, usize); 5]) -> String {
    let [preserved, lost, dropped, unreachable, unclear] = counts.map(|(_, count)| count);
    let total = preserved + lost + dropped + unreachable + unclear;
    if total == 0 {
        return "No Service is exposed.".to_owned();
    }
    let arriving = preserved + lost;
    let mut text = match (lost, unreachable) {
        (0, 0) if unclear == 0 => {
            format!("Every connection that arrives keeps its source IP ({arriving} of {arriving} paths).")
        }
        (0, _) => format!("No path loses the source IP; {preserved} of {total} paths keep it."),
        _ => format!("The source IP is lost on {lost} of {total} paths."),
    };
    if unreachable > 0 {
        let _ = write!(
            text,
            " {unreachable} {} to nothing.",
            if unreachable == 1 { "path leads" } else { "paths lead" }
        );
    }
    if unclear > 0 {
        let _ = write!(text, " {unclear} {} unclear.", if unclear == 1 { "path is" } else { "paths are" });
    }
    text
}

fn plural(count: usize, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_the_worst_and_counts_everything_else() {
        for (counts, text) in [
            ([0, 0, 0, 0, 0], "No Service is exposed."),
            ([7, 0, 2, 0, 0], "Every connection that arrives keeps its source IP (7 of 7 paths)."),
            ([7, 0, 2, 1, 0], "No path loses the source IP; 7 of 10 paths keep it. 1 path leads to nothing."),
            ([7, 3, 0, 0, 2], "The source IP is lost on 3 of 12 paths. 2 paths are unclear."),
            ([7, 0, 0, 0, 1], "No path loses the source IP; 7 of 8 paths keep it. 1 path is unclear."),
        ] {
            let mut counted = Outcome::ALL.map(|outcome| (outcome, 0));
            counted.iter_mut().zip(counts).for_each(|(each, count)| each.1 = count);
            assert_eq!(sentence(&counted), text);
        }
    }
}
