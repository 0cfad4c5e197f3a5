//! A plan, read from what was printed.

/// One write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Step {
    pub(crate) action: String,
    /// The name of what is written, after its namespace if it has one.
    pub(crate) object: String,
}

/// How it is to end for an object.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) object: String,
    /// Why it does not become `Ready`, in a word. None: it does.
    pub(crate) reason: Option<String>,
    pub(crate) message: String,
}

/// What was told.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) code: Option<i32>,
    pub(crate) text: String,
    /// The steps of each moment, with what they are to change.
    pub(crate) moments: Vec<Vec<(Step, String)>>,
    pub(crate) verdicts: Vec<Verdict>,
}

impl Told {
    /// Fails on everything that does not name what is written: the comparison would leave it out.
    pub(crate) fn read(code: Option<i32>, text: String) -> Self {
        let (mut moments, mut verdicts) = (Vec::new(), Vec::new());
        for line in text.lines() {
            match Line::of(line) {
                Line::Numbered(number, rest) => {
                    assert_eq!(number, moments.len() + 1, "moments are numbered one by one: {text}");
                    match rest.strip_prefix("the same in ") {
                        Some(waves) => more_waves(&mut moments, waves),
                        None => moments.push(steps(rest)),
                    }
                }
                Line::Below(rest) => moments.last_mut().unwrap().extend(steps(rest)),
                Line::Said(rest) => verdicts.extend(verdict(rest)),
                Line::Aside => {}
            }
        }
        Self { code, text, moments, verdicts }
    }

    pub(crate) fn steps(&self) -> impl Iterator<Item = &(Step, String)> {
        self.moments.iter().flatten()
    }
}

/// The pool in what a handover is to change.
pub(crate) fn pool(effect: &str) -> &str {
    effect.strip_prefix("to the agent of pool ").unwrap()
}

enum Line<'a> {
    /// The first line of a moment.
    Numbered(usize, &'a str),
    /// A further line of it.
    Below(&'a str),
    /// About an object.
    Said(&'a str),
    /// What nodes see in the end, or how long is waited.
    Aside,
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Self {
        let rest = line.trim_start();
        if rest.len() == line.len() {
            return Self::Said(line);
        }
        let first = rest.split_once("  ").and_then(|(number, rest)| Some((number.parse().ok()?, rest)));
        match first {
            Some((number, rest)) => Self::Numbered(number, rest),
            None if rest.starts_with("its Services, seen from ") || rest.ends_with(" s later") => Self::Aside,
            None => Self::Below(rest),
        }
    }
}

/// One line: an action, the objects it is done to, and what that changes.
fn steps(line: &str) -> Vec<(Step, String)> {
    assert!(!line.ends_with("(without the file, too)"), "the cluster was at rest: {line}");
    let (action, rest) = line.split_once(' ').unwrap();
    let (objects, effect) = rest.split_once(": ").unwrap_or((rest, ""));
    let step =
        |object: &str| (Step { action: action.to_owned(), object: object.to_owned() }, effect.to_owned());
    names(objects).into_iter().map(step).collect()
}

fn names(list: &str) -> Vec<&str> {
    assert!(!list.contains('…'), "the plan names only some of them, so the cluster has too many: {list}");
    list.split(", ").collect()
}

/// Waves that are told by the three moments before them, their nodes in order.
fn more_waves(moments: &mut Vec<Vec<(Step, String)>>, line: &str) {
    let (number, nodes) = line.split_once(" more waves: ").unwrap();
    let (waves, nodes): (usize, _) = (number.parse().unwrap(), names(nodes));
    let [.., pull, over, handed] = moments.as_slice() else { panic!("no wave was told before: {line}") };
    let alike = [pull.clone(), over.clone(), handed.clone()];
    let one_kind =
        |moment: &Vec<(Step, String)>| moment.iter().all(|step| step.0.action == moment[0].0.action);
    assert!(
        alike.iter().all(one_kind) && nodes.len().is_multiple_of(waves),
        "which node is in which wave? {line}"
    );
    for wave in nodes.chunks(nodes.len() / waves) {
        moments.extend(alike.iter().map(|moment| {
            let (Step { action, .. }, effect) = &moment[0];
            let step =
                |node: &&str| (Step { action: action.clone(), object: (*node).to_owned() }, effect.clone());
            wave.iter().map(step).collect()
        }));
    }
}

fn verdict(line: &str) -> Option<Verdict> {
    if let Some((object, message)) = line.split_once(" becomes Ready: ") {
        return Some(Verdict { object: object.to_owned(), reason: None, message: message.to_owned() });
    }
    let (object, why) = line.split_once(" does not become Ready: ")?;
    let (reason, message) = why.split_once(": ").unwrap();
    Some(Verdict { object: object.to_owned(), reason: Some(reason.to_owned()), message: message.to_owned() })
}
