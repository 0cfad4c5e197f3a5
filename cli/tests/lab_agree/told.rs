//! What each command says about the way from a client outside to a Service.

pub(crate) mod check;
pub(crate) mod doctor;
pub(crate) mod probe;
pub(crate) mod report;
pub(crate) mod trace;

use isp_testkit::plugin::Ended;
use isp_testkit::schema::assert_output;
use serde_json::Value;

/// The words for what is on the way to the first node, which no object shows.
const BEFORE_FIRST_NODE: &str = "NAT or a proxy before the first node";

/// Where an address is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    /// Outside the cluster.
    BeforeFirstNode,
    /// At the node that the client connects to.
    Node,
    /// At the sidecar of the application.
    Sidecar,
}

/// The output of a command for scripts, which is as its schema says, and whether it found no fault.
fn parsed(command: &str, ended: &Ended) -> (Value, bool) {
    let told = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
    assert_output(command, &told);
    (told, ended.code == Some(0))
}
