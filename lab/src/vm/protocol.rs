//! The protocol on a machine's serial port: one JSON line per request, one per answer, one request
//! at a time.

use serde::{Deserialize, Serialize};

use crate::command::Output;
use crate::topology::{Node, Topology};

/// The path of the machine's identity inside the machine.
pub(super) const IDENTITY: &str = "/etc/lab-machine.json";

/// The machine's own addresses and the lab's topology, which determine its network.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) topology: Topology,
    pub(super) node: Node,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Request {
    /// Answered once the machine is up.
    Ready,
    /// Run a program to its end.
    Run(Vec<String>),
    /// Start a long-running program under a name.
    Start { name: String, arguments: Vec<String> },
    /// Stop a started program.
    Stop(String),
}

/// The answer to a successful request.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Answer {
    Done,
    Ran(Output),
}
