//! A plan, read from `kubectl isp plan -o json`.

use serde_json::Value;

/// One write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Step {
    pub(crate) action: String,
    /// The name of the object that is written, after its namespace if it has one.
    pub(crate) object: String,
}

/// The forecast for an object.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) object: String,
    /// The reason of the `Ready` condition. None: the object becomes `Ready`.
    pub(crate) reason: Option<String>,
    pub(crate) message: String,
}

/// The output of the command.
#[derive(Debug)]
pub(crate) struct PlanOutput {
    pub(crate) code: Option<i32>,
    pub(crate) text: String,
    /// The writes of each step of the plan, with their descriptions.
    pub(crate) moments: Vec<Vec<(Step, String)>>,
    pub(crate) verdicts: Vec<Verdict>,
}

impl PlanOutput {
    /// Fails on everything that does not name a write: the comparison would leave it out.
    pub(crate) fn read(code: Option<i32>, text: String) -> Self {
        let plan: Value = serde_json::from_str(&text).unwrap();
        assert!(plan.get("unsettled").is_none(), "{text}");
        let list = |value: &Value| value.as_array().unwrap().clone();
        let mut moments: Vec<Vec<(Step, String)>> = Vec::new();
        for step in list(&plan["steps"]) {
            assert_eq!(step["step"], moments.len() + 1, "steps are numbered one by one: {text}");
            let actions: Vec<(Step, String)> = list(&step["actions"]).iter().map(action).collect();
            assert!(!actions.is_empty(), "{text}");
            moments.push(actions);
        }
        let verdicts = list(&plan["objects"]).iter().map(verdict).collect();
        Self { code, text, moments, verdicts }
    }

    pub(crate) fn steps(&self) -> impl Iterator<Item = &(Step, String)> {
        self.moments.iter().flatten()
    }
}

fn word(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("{field} of {value}")).to_owned()
}

fn action(action: &Value) -> (Step, String) {
    assert_eq!(action["pendingWithoutFile"], false, "the cluster was at rest: {action}");
    let object = word(action, "object");
    let (_, name) = object.split_once('/').unwrap();
    (Step { action: word(action, "action"), object: name.to_owned() }, word(action, "description"))
}

fn verdict(object: &Value) -> Verdict {
    let ready = object["ready"].as_bool().unwrap();
    let reason = (!ready).then(|| word(object, "reason"));
    assert_eq!(ready, object.get("reason").is_none(), "{object}");
    Verdict { object: word(object, "name"), reason, message: word(object, "message") }
}

/// The pool to which a node is moved, from the description.
pub(crate) fn pool(description: &str) -> &str {
    description.split_once(" to the agent of pool ").unwrap().1
}
