//! Keeps the kernel's tables equal to the Services to serve: all of them at first and after a
//! failure, later only those that change. Runs on the thread of the kernel's connection.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use isp_dataplane::claims::Contest;
use isp_dataplane::compile::{Frontend, ServicePlan, compile};
use isp_dataplane::layout::AFFINITY;
use isp_dataplane::model::{Node, ServiceName, Target};
use isp_dataplane::netlink::Batch;
use isp_dataplane::nft::{Element, Family, Handle, Name, Operation, Table};
use isp_dataplane::plane::Plane;
use isp_dataplane::rules::Settings;
use isp_kernel::{CommitError, Conntrack, ConntrackError, Found, Kernel, LoadError, ReadError};
use thiserror::Error;

use super::serving::{Served, ServiceChange};
use super::stale_flows::StaleFlows;

/// How often everything is read and compared again while other programs change our tables.
const ATTEMPTS: u32 = 5;

/// Why the tables are not as they should be.
#[derive(Debug, Error)]
pub(crate) enum ProgramError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// What one change did.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The number of operations that were committed.
    pub(crate) operations: usize,
    /// The number of tables that were loaded as a whole.
    pub(crate) loaded: usize,
    /// The number of stale connections that were deleted.
    pub(crate) flows: usize,
    /// The number of Services that are programmed now.
    pub(crate) services: usize,
    /// All ports that are not programmed, because all identities are in use.
    pub(crate) refused: Vec<Frontend>,
    /// All frontends that several Services claim.
    pub(crate) contests: Vec<Contest>,
    /// Why stale connections could not be deleted.
    pub(crate) conntrack: Option<ConntrackError>,
    /// Whether [`Programmer::sweep`] has work to do.
    pub(crate) leaves_something: bool,
}

/// The tables of both families.
pub(crate) struct Programmer {
    table: Name,
    ahead: i32,
    remembered_clients: u32,
    node: Option<Node>,
    planes: Vec<Plane>,
    /// The Services that are programmed, in either family.
    services: HashSet<Arc<ServiceName>>,
    /// Endpoints that are gone, by family. A packet that was on its way when they went may have
    /// remembered its client since.
    gone: Vec<(Family, HashSet<(Handle, Target)>)>,
    conntrack: Option<Conntrack>,
}

impl Programmer {
    pub(crate) fn new(table: Name, ahead: i32, remembered_clients: u32) -> Self {
        Self {
            table,
            ahead,
            remembered_clients,
            node: None,
            planes: Vec::new(),
            services: HashSet::new(),
            gone: Vec::new(),
            conntrack: None,
        }
    }

    fn new_planes(&self, node: &Node) -> Vec<Plane> {
        let settings = |family| Settings {
            table: self.table.clone(),
            family,
            ahead: self.ahead,
            remembered_clients: self.remembered_clients,
        };
        Family::ALL.into_iter().map(|family| Plane::new(settings(family), node.clone())).collect()
    }

    /// The tables of a node without Services, to find out whether the kernel takes them.
    pub(crate) fn empty_tables(&self, node: &Node) -> Vec<Table> {
        self.new_planes(node).iter().map(Plane::table).collect()
    }

    /// The ClusterIPs that the kernel serves: those of the agent before this one.
    pub(crate) fn cluster_ips(
        &self,
        kernel: &mut Kernel,
        node: &Node,
    ) -> Result<HashSet<IpAddr>, ProgramError> {
        let mut all = HashSet::new();
        for table in self.empty_tables(node) {
            if let Found::Present { elements, .. } = kernel.read(&table)? {
                all.extend(Plane::cluster_ips(&elements));
            }
        }
        Ok(all)
    }

    /// Makes the kernel serve exactly these Services, whatever it has. Without Services there are
    /// no tables.
    pub(crate) fn synchronize(
        &mut self,
        kernel: &mut Kernel,
        node: &Node,
        services: &[(Arc<ServiceName>, Served)],
    ) -> Result<Outcome, ProgramError> {
        let mut attempt = 1;
        loop {
            match self.try_to_synchronize(kernel, node, services) {
                // Another program changed our tables meanwhile.
                Err(ProgramError::Commit(CommitError::Overtaken(_))) if attempt < ATTEMPTS => attempt += 1,
                other => return other,
            }
        }
    }

    fn try_to_synchronize(
        &mut self,
        kernel: &mut Kernel,
        node: &Node,
        services: &[(Arc<ServiceName>, Served)],
    ) -> Result<Outcome, ProgramError> {
        let before = std::mem::take(&mut self.planes);
        let mut flows = StaleFlows::new(node);
        let mut planes = self.new_planes(node);
        let mut outcome = Outcome::default();
        for plane in &mut planes {
            if let Found::Present { elements, .. } = kernel.read(&plane.table())? {
                plane.adopt(&elements);
            }
            let family = plane.family();
            let to_serve = services.iter().filter_map(|(name, served)| {
                let plan = compile(&served.service, node, served.decision.view, family);
                match plan_before(&before, family, name) {
                    Some(before) => flows.add(Some(before), plan.as_ref()),
                    None => plan.iter().for_each(|plan| flows.add_unknown(plan)),
                }
                Some((name.clone(), plan?))
            });
            plane.begin(to_serve);
        }
        let serving: HashSet<_> = services.iter().map(|(name, _)| name.clone()).collect();
        for (name, plane) in before.iter().flat_map(|plane| plane.services().map(move |name| (name, plane))) {
            if !serving.contains(name) {
                flows.add(plane.plan(name), None);
            }
        }
        let tables: Vec<Table> = planes.iter().map(Plane::table).collect();
        if services.is_empty() {
            kernel.unload(&tables.iter().collect::<Vec<_>>())?;
        } else {
            let (mut batch, mut current, mut differing) = (Batch::new(), Vec::new(), Vec::new());
            for (plane, table) in planes.iter_mut().zip(&tables) {
                match kernel.read(table)? {
                    Found::Present { difference: None, elements } => {
                        let (clients, others): (Vec<Element>, Vec<Element>) =
                            elements.into_iter().partition(|element| element.set == AFFINITY);
                        let forgettable = plane.forgettable(&clients).into_iter().cloned();
                        let forgettable: Vec<_> = forgettable.map(Operation::DeleteElement).collect();
                        let mut operations = plane.repair(others);
                        operations.extend(forgettable);
                        outcome.operations += operations.len();
                        batch.apply(&kernel.id(table), &operations);
                        current.push(table);
                    }
                    Found::Absent | Found::Present { .. } => differing.push((table, plane.elements())),
                }
            }
            kernel.adopt(&current)?;
            kernel.commit(&batch)?;
            let replaced: Vec<_> = differing.iter().map(|(table, all)| (*table, all.as_slice())).collect();
            if !replaced.is_empty() {
                kernel.load(&replaced)?;
            }
            outcome.loaded = replaced.len();
            outcome.leaves_something = true;
        }
        self.node = Some(node.clone());
        self.planes = if services.is_empty() { Vec::new() } else { planes };
        self.services = serving;
        self.gone.clear();
        self.describe(&mut outcome);
        self.delete_flows(&flows, &mut outcome);
        Ok(outcome)
    }

    /// Changes these Services; `None` removes one. Everything must have been synchronized before.
    /// After an error everything has to be synchronized again.
    pub(crate) fn apply(
        &mut self,
        kernel: &mut Kernel,
        changes: &[ServiceChange],
    ) -> Result<Outcome, ProgramError> {
        let Some(node) = self.node.clone() else { return Ok(Outcome::default()) };
        let (mut outcome, mut flows, mut batch) = (Outcome::default(), StaleFlows::new(&node), Batch::new());
        for (name, served) in changes {
            match served {
                Some(_) => self.services.insert(name.clone()),
                None => self.services.remove(name),
            };
        }
        for plane in &mut self.planes {
            let mut gone = HashSet::new();
            let mut operations = Vec::new();
            for (name, served) in changes {
                let plan = served
                    .as_ref()
                    .and_then(|each| compile(&each.service, &node, each.decision.view, plane.family()));
                flows.add(plane.plan(name), plan.as_ref());
                let update = plane.set(name, plan);
                operations.extend(update.now);
                gone.extend(update.forget);
            }
            outcome.operations += operations.len();
            batch.apply(&kernel.id_of(plane.family(), plane.table_name()), &operations);
            if !gone.is_empty() {
                self.gone.push((plane.family(), gone));
            }
        }
        kernel.commit(&batch)?;
        self.forget_clients(kernel)?;
        self.describe(&mut outcome);
        outcome.leaves_something = true;
        self.delete_flows(&flows, &mut outcome);
        Ok(outcome)
    }

    /// Forgets the clients of endpoints that are gone.
    fn forget_clients(&self, kernel: &mut Kernel) -> Result<(), CommitError> {
        for (family, gone) in &self.gone {
            let Some(plane) = self.planes.iter().find(|plane| plane.family() == *family) else { continue };
            let table = plane.table();
            let Some(set) = table.sets.iter().find(|set| set.name == AFFINITY) else { continue };
            let of_gone =
                |each: &Element| Plane::remembered_endpoint(each).is_some_and(|pair| gone.contains(&pair));
            let mut remembered = kernel.elements(&table, set)?;
            remembered.retain(of_gone);
            kernel.delete_existing(&table, &remembered)?;
        }
        Ok(())
    }

    /// Deletes elements that no packet finds any more, and forgets clients that were remembered
    /// late.
    pub(crate) fn sweep(&mut self, kernel: &mut Kernel) -> Result<(), ProgramError> {
        self.forget_clients(kernel)?;
        self.gone.clear();
        let mut batch = Batch::new();
        for plane in &mut self.planes {
            let operations = plane.sweep();
            if !operations.is_empty() {
                batch.apply(&kernel.id_of(plane.family(), plane.table_name()), &operations);
            }
        }
        Ok(kernel.commit(&batch)?)
    }

    /// Tells what is programmed and what is not.
    fn describe(&self, outcome: &mut Outcome) {
        outcome.services = self.services.len();
        outcome.refused = self.planes.iter().flat_map(|plane| plane.refused().iter().copied()).collect();
        outcome.contests = self.planes.iter().flat_map(Plane::contests).collect();
    }

    /// Failing to delete stale connections is reported, and nothing else: they end by themselves.
    fn delete_flows(&mut self, flows: &StaleFlows, outcome: &mut Outcome) {
        if flows.is_empty() {
            return;
        }
        let deleted = match self.conntrack.take().map_or_else(Conntrack::open, Ok) {
            Ok(mut conntrack) => {
                let deleted = flows.delete(&mut conntrack);
                self.conntrack = Some(conntrack);
                deleted
            }
            Err(error) => Err(error),
        };
        match deleted {
            Ok(number) => outcome.flows = number,
            Err(error) => outcome.conntrack = Some(error),
        }
    }
}

fn plan_before<'a>(planes: &'a [Plane], family: Family, name: &ServiceName) -> Option<&'a ServicePlan> {
    planes.iter().find(|plane| plane.family() == family)?.plan(name)
}
