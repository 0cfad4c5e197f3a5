//! The rules and the routing on their way into the kernel: all of it, or nothing.
//!
//! The routing comes first: it does nothing as long as no rule marks a packet. Then one transaction
//! replaces the tables of both families. Everything is read back; if it differs, or if a step
//! fails, whatever this program added is removed.

use std::fmt;

use isp_dataplane::netlink::{Difference, FoundRouting};
use isp_dataplane::nft::{Element, Family};
use isp_dataplane::redirect::{LocalDelivery, Rules, Settings};
use isp_kernel::{
    CommitError, Found, Kernel, LoadError, PolicyRouting, ReadError, RoutingError, SocketError,
};
use thiserror::Error;

/// Why the namespace could not be programmed.
#[derive(Debug, Error)]
pub enum ProgramError {
    /// A step failed, and nothing of it is left.
    #[error("{0}\nWhatever this program had added is removed.")]
    Failed(#[from] StepError),
    /// A step failed, and so did a step back.
    #[error("{failure}\nSome of it could not be undone: {undo}. Delete the pod.")]
    NotUndone {
        /// The first failure.
        failure: Box<StepError>,
        /// The failure on the way back.
        undo: Box<StepError>,
    },
}

/// A step that failed.
#[derive(Debug, Error)]
pub enum StepError {
    /// There is no connection to the kernel.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The routing could not be changed or read.
    #[error("cannot set up the routing of answers to the proxy: {0}")]
    Routing(#[from] RoutingError),
    /// The tables could not be loaded.
    #[error("cannot load the rules: {0}{hint}", hint = MODULES)]
    Load(#[from] LoadError),
    /// The tables could not be read.
    #[error("cannot read the rules back: {0}")]
    Read(#[from] ReadError),
    /// The kernel has other rules than those that were loaded.
    #[error("the rules are not in force as they were loaded: {0}; another program changes them in this pod")]
    Rules(Mismatch),
    /// The kernel has no such routing.
    #[error(
        "the routing is not in force as it was added: {0} is missing; another program changes it in this pod"
    )]
    Missing(&'static str),
}

const MODULES: &str = "; this needs CAP_NET_ADMIN, and Linux 5.6 or later with nf_tables and its modules for nat, \
    redir, tproxy, ct, fib and socket";

/// How a table differs.
#[derive(Debug)]
pub enum Mismatch {
    /// It does not exist.
    Absent,
    /// Its chains, rules or sets are others.
    Table(Difference),
    /// Its sets have other elements.
    Elements,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => out.write_str("the table is missing"),
            Self::Table(difference) => difference.fmt(out),
            Self::Elements => out.write_str("a set has other elements"),
        }
    }
}

/// What the namespace is to have.
pub(crate) struct Wanted {
    pub(crate) rules: Vec<Rules>,
    pub(crate) routing: Vec<LocalDelivery>,
}

/// What this run has added so far.
#[derive(Default)]
struct Added {
    routing: Vec<LocalDelivery>,
    tables: bool,
}

impl Wanted {
    pub(crate) fn of<E>(
        settings: &Settings,
        families: &[Family],
        cgroup_id: impl Fn(&str) -> Result<u64, E>,
    ) -> Result<Self, E> {
        let rules = families.iter().map(|family| settings.rules(*family, &cgroup_id));
        let routing = families.iter().filter_map(|family| settings.local_delivery(*family));
        Ok(Self { rules: rules.collect::<Result<_, E>>()?, routing: routing.collect() })
    }

    /// Programs the namespace of this process.
    pub(crate) fn program(&self) -> Result<(), ProgramError> {
        let mut kernel = Kernel::open().map_err(StepError::from)?;
        let mut routing = PolicyRouting::open().map_err(StepError::from)?;
        let mut added = Added::default();
        let Err(failure) = self.steps(&mut kernel, &mut routing, &mut added) else { return Ok(()) };
        match self.undo(&mut kernel, &mut routing, &added) {
            Ok(()) => Err(failure.into()),
            Err(undo) => Err(ProgramError::NotUndone { failure: Box::new(failure), undo: Box::new(undo) }),
        }
    }

    fn steps(
        &self,
        kernel: &mut Kernel,
        routing: &mut PolicyRouting,
        added: &mut Added,
    ) -> Result<(), StepError> {
        for each in &self.routing {
            if routing.find(each)? == FoundRouting::default() {
                added.routing.push(*each);
            }
            routing.add(each)?;
        }
        let tables: Vec<_> =
            self.rules.iter().map(|rules| (&rules.table, rules.elements.as_slice())).collect();
        let loaded = kernel.load(&tables);
        added.tables = loaded.as_ref().map_or_else(may_be_loaded, |()| true);
        loaded?;
        for rules in &self.rules {
            verify(kernel, rules)?;
        }
        for each in &self.routing {
            match routing.find(each)? {
                FoundRouting { rule: true, route: true } => {}
                FoundRouting { rule: false, .. } => return Err(StepError::Missing("the rule for the mark")),
                FoundRouting { route: false, .. } => return Err(StepError::Missing("the local route")),
            }
        }
        Ok(())
    }

    fn undo(&self, kernel: &mut Kernel, routing: &mut PolicyRouting, added: &Added) -> Result<(), StepError> {
        if added.tables {
            let tables: Vec<_> = self.rules.iter().map(|rules| &rules.table).collect();
            kernel.unload(&tables)?;
        }
        for each in &added.routing {
            routing.remove(each)?;
        }
        Ok(())
    }
}

/// Whether some of the tables may be in force despite the error.
fn may_be_loaded(error: &LoadError) -> bool {
    matches!(error, LoadError::Commit(CommitError::Unknown(_) | CommitError::Partial { .. }))
}

/// Compares a table and its elements with the kernel's.
fn verify(kernel: &mut Kernel, rules: &Rules) -> Result<(), StepError> {
    let mismatch = match kernel.read(&rules.table)? {
        Found::Absent => Mismatch::Absent,
        Found::Present { difference: Some(difference), .. } => Mismatch::Table(difference),
        Found::Present { difference: None, elements } if sorted(&elements) != sorted(&rules.elements) => {
            Mismatch::Elements
        }
        Found::Present { .. } => return Ok(()),
    };
    Err(StepError::Rules(mismatch))
}

fn sorted(elements: &[Element]) -> Vec<&Element> {
    let mut sorted: Vec<_> = elements.iter().collect();
    sorted.sort();
    sorted
}
