//! The text: a heading and a line for each check, then the proposal.

use std::path::Path;

use super::line::{Line, State};
use super::{Check, Section};
use crate::doctor::finding::Subject;
use crate::output::Symbols;
use crate::text::{count, printable, wrap_lines};

/// So many lines of one check and state are printed.
const MAX_ALIKE: usize = 10;
/// Further lines of a wrapped line begin in this column, and its details further to the right.
const HANGING: usize = 2;
/// Details are indented by this much.
const DETAIL: &str = "    ";
/// Longer lines are cut.
const MAX_LINE: usize = 2000;
/// The file that the proposal is shown for.
const FILE: &str = "isp.yaml";

/// `file`: the file of `--write`.
pub(super) fn text(check: &Check, file: Option<&Path>, symbols: Symbols, width: Option<usize>) -> String {
    let mut text: String = check.sections.iter().map(|part| section(part, symbols, width)).collect();
    text.push_str(&proposal(check, file));
    text.push_str(&wrap_lines(&summary(check), width, DETAIL.len()));
    text
}

/// In ASCII a failed line begins with `x`: `no` before a sentence would deny it.
fn mark(state: State, symbols: Symbols) -> &'static str {
    match (state, symbols) {
        (State::Passed, _) => symbols.yes(),
        (State::Failed, Symbols::Unicode) => symbols.no(),
        (State::Failed, Symbols::Ascii) => "x",
        (State::Notice, _) => "!",
    }
}

fn heading(title: &str) -> String {
    format!("{title}\n{}\n", "-".repeat(title.chars().count()))
}

fn section(section: &Section, symbols: Symbols, width: Option<usize>) -> String {
    let mut text = heading(section.title);
    for alike in section.checks.chunk_by(|a, b| (a.check, a.state) == (b.check, b.state)) {
        let (whole, others) = alike.split_at(alike.len().min(MAX_ALIKE));
        text.extend(whole.iter().map(|line| lines(line, symbols, width)));
        if let Some(first) = others.first() {
            let mark = mark(first.state, symbols);
            let more = format!("{mark} the same for {} more (-o json lists all)", others.len());
            text.push_str(&wrap_lines(&more, width, DETAIL.len()));
        }
    }
    text + "\n"
}

/// Prose is wrapped. Commands and addresses are not, so that they can be copied.
fn lines(line: &Line, symbols: Symbols, width: Option<usize>) -> String {
    let head = format!("{} {}", mark(line.state, symbols), plain(&line.text));
    let mut text = wrap_lines(&head, width, HANGING);
    for detail in &line.details {
        let detail = format!("{DETAIL}{}", plain(detail));
        if detail.trim_start().starts_with("kubectl ") {
            text.extend([detail.as_str(), "\n"]);
        } else {
            text.push_str(&wrap_lines(&detail, width, DETAIL.len() + 2));
        }
    }
    if let Some(address) = line.runbook.as_ref().filter(|_| line.state != State::Passed) {
        text.extend([DETAIL, "see ", address, "\n"]);
    }
    text
}

/// Text from objects of the cluster, made safe for a terminal.
fn plain(text: &str) -> String {
    let mut plain: String = printable(text).chars().take(MAX_LINE).collect();
    if text.chars().nth(MAX_LINE).is_some() {
        plain.push_str("...");
    }
    plain
}

fn proposal(check: &Check, file: Option<&Path>) -> String {
    let Some(proposal) = &check.proposal else {
        return file
            .map_or_else(String::new, |_| "no object is proposed, so nothing was written\n\n".to_owned());
    };
    let mut text = heading("proposed object");
    match file {
        None => text.push_str(&proposal.text(Path::new(FILE))),
        Some(path) => {
            let file = path.display();
            let commands = proposal.commands.iter().map(|command| plain(command));
            text.extend(["written to ", &file.to_string(), "\n"]);
            let steps =
                commands.chain([format!("kubectl isp plan -f {file}"), format!("kubectl apply -f {file}")]);
            text.extend(steps.map(|step| format!("{DETAIL}{step}\n")));
            text.extend(proposal.notes.iter().map(|note| format!("! {}\n", plain(note))));
        }
    }
    text + "\n"
}

fn summary(check: &Check) -> String {
    let of_services =
        || check.sections.iter().flat_map(|section| &section.checks).filter(|line| line.check == "service");
    let services = of_services().filter(|line| is_service(line)).count();
    let lost = of_services().filter(|line| line.state == State::Failed).count();
    let failed = check.lines().filter(|line| line.state == State::Failed).count();
    let number = |number: usize, noun: &str| count(u64::try_from(number).unwrap_or(u64::MAX), noun);
    let verb = if lost == 1 { "loses" } else { "lose" };
    let of_all = number(services, "exposed Service");
    match (failed, services) {
        (0, 0) => "no problem: no Service is exposed".to_owned(),
        (0, 1) => "no problem: the exposed Service keeps the source IP".to_owned(),
        (0, _) => format!("no problem: all {of_all} keep the source IP"),
        (failed, _) => format!("{}; {lost} of {of_all} {verb} the source IP", number(failed, "problem")),
    }
}

/// Other lines of the section say that there is none.
fn is_service(line: &Line) -> bool {
    line.subject.as_ref().map(Subject::kind) == Some("Service")
}
