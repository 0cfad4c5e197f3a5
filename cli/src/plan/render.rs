//! A forecast as text for people: equal actions share a line, equal waves are told once. Pure.

use std::fmt::Write;

use super::describe::Sentence;
use super::forecast::{Forecast, ObjectForecast, Step};
use super::merge::Change;
use super::redirects::RedirectForecast;
use crate::text::{few, printable};

/// The steps of a wave: pull the images, move the nodes, wait until they have moved.
const WAVE: usize = 3;
/// So many equal waves are printed one by one; of more, only the first one.
const MAX_WAVES: usize = 3;
/// A wait that is worth a line, in seconds.
const LONG_WAIT: i64 = 20;
/// Further lines of a wrapped line begin in this column, after the number of the step.
pub(super) const INDENT: usize = 7;
const LEGEND: &str = "Actions with the same step number run in any order.\n";

pub(super) fn render(forecast: &Forecast) -> String {
    let mut text = String::new();
    for ObjectForecast { name, change, .. } in &forecast.objects {
        let line = match change {
            Change::Created => "would be created",
            Change::Changed => "would be changed",
            Change::Unchanged => "is unchanged: the cluster has it as in the file",
        };
        let _ = writeln!(text, "{name} {line}");
    }
    for note in &forecast.notes {
        let _ = writeln!(text, "note: {}", printable(note));
    }
    for node in &forecast.failing_agents {
        let _ = writeln!(text, "the agent on node {node} fails; the plan assumes that it keeps failing");
    }
    if forecast.steps.is_empty() {
        text.push_str("the operator has nothing to change\n");
    } else {
        text.push_str(&steps(&forecast.steps));
        text.push_str(LEGEND);
    }
    for object in &forecast.objects {
        text.push_str(&verdict(object));
    }
    if let Some(unsettled) = &forecast.unsettled {
        let _ = writeln!(text, "the plan does not come to rest, which is a bug: {unsettled}");
    }
    text
}

fn verdict(object: &ObjectForecast) -> String {
    let ObjectForecast { name, reason, message, .. } = object;
    let mut text = match (reason, object.stays_ready) {
        (Some(reason), _) => format!("{name} does not become Ready: {reason}: {message}\n"),
        (None, true) => format!("{name} stays Ready: {message}\n"),
        (None, false) => format!("{name} becomes Ready: {message}\n"),
    };
    for change in &object.views {
        let nodes = few(&change.nodes);
        let plural = if change.nodes.len() == 1 { "" } else { "s" };
        let (from, to) = (change.from, change.to);
        let _ = writeln!(text, "     view of its Services on node{plural} {nodes}: {from:?} -> {to:?}");
    }
    for RedirectForecast { entry, description } in &object.redirects {
        for (place, line) in description.iter().enumerate() {
            let head = if place == 0 { format!("{entry}: ") } else { "  ".to_owned() };
            let _ = writeln!(text, "     {head}{}", printable(line));
        }
    }
    if let Some(recreate) = &object.recreate {
        let _ = writeln!(text, "     {}", printable(&recreate.sentence()));
    }
    text
}

/// Equal actions of one step on several objects.
struct Group<'a> {
    sentence: &'a Sentence,
    pending: bool,
    names: Vec<String>,
}

fn groups(step: &Step) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for action in &step.actions {
        let (sentence, pending) = (&action.sentence, action.pending_without_file);
        let equal = |group: &&mut Group<'_>| (group.sentence, group.pending) == (sentence, pending);
        match groups.iter_mut().find(equal) {
            Some(group) => group.names.push(action.name().to_owned()),
            None => groups.push(Group { sentence, pending, names: vec![action.name().to_owned()] }),
        }
    }
    groups
}

/// All steps in order. Of many equal waves the first one stands for all.
fn steps(steps: &[Step]) -> String {
    let mut text = String::new();
    let mut place = 0;
    while let Some(step) = steps.get(place) {
        let waves = equal_waves(&steps[place..]);
        if waves <= MAX_WAVES {
            text.push_str(&lines(step));
            place += 1;
            continue;
        }
        let (first, rest) = steps[place..place + WAVE * waves].split_at(WAVE);
        text.extend(first.iter().map(lines));
        let names: Vec<String> =
            rest.iter().step_by(WAVE).flat_map(groups).flat_map(|group| group.names).collect();
        let (from, to, more) = (step.number, step.number + WAVE - 1, waves - 1);
        let (number, names) = (to + 1, few(&names));
        let _ = writeln!(text, "{number:>3}  repeat steps {from} to {to} in {more} more waves: {names}");
        place += WAVE * waves;
    }
    text
}

/// How often the first steps repeat with other nodes and without a wait.
fn equal_waves(steps: &[Step]) -> usize {
    let alike = |a: &Step, b: &Step| {
        let (a, b) = (groups(a), groups(b));
        let same = |(a, b): (&Group<'_>, &Group<'_>)| (a.sentence, a.pending) == (b.sentence, b.pending);
        a.len() == b.len() && a.iter().zip(&b).all(same)
    };
    let swift = steps.iter().skip(1).take_while(|step| step.wait_seconds <= LONG_WAIT).count();
    let waves = steps[..steps.len().min(swift + 1)].chunks_exact(WAVE);
    waves.take_while(|wave| wave.iter().zip(steps).all(|(a, b)| alike(a, b))).count()
}

fn lines(step: &Step) -> String {
    let mut text = String::new();
    if step.wait_seconds > LONG_WAIT {
        let _ = writeln!(text, "     wait {} s", step.wait_seconds);
    }
    for (place, Group { sentence, pending, names }) in groups(step).iter().enumerate() {
        let number = if place == 0 { step.number.to_string() } else { String::new() };
        let sentence = sentence.about(&few(names), names.len());
        let pending = if *pending { " (pending without the file, too)" } else { "" };
        let _ = writeln!(text, "{number:>3}  {sentence}{pending}");
    }
    text
}
