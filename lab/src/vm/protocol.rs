//! What is said over a machine's serial port: a JSON line asks, a JSON line answers, one at a time.

use serde::{Deserialize, Serialize};

use crate::command::Output;
use crate::topology::{Node, Topology};

/// Where a machine finds what it is to be.
pub(super) const IDENTITY: &str = "/etc/lab-machine.json";

/// Who a machine is and who is around it; its network follows from that.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) topology: Topology,
    pub(super) node: Node,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Request {
    /// Answered when the machine has come up.
    Ready,
    /// Run a program to its end.
    Run(Vec<String>),
    /// Start a program that goes on running, under a name.
    Start { name: String, arguments: Vec<String> },
    /// End a started program.
    Stop(String),
}

/// What comes back, unless it is the reason why nothing could be done.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Answer {
    Done,
    Ran(Output),
}
