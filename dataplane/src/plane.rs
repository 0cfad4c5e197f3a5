//! The programmed Services of one family: what the kernel has, and the steps to what it should
//! have.
//!
//! A change costs what its Service costs: the Service's elements are made from its old and its new
//! plan and compared. The plane is a value; whoever has a socket sends its operations:
//!
//! 1. At start: dump the elements, [`Plane::adopt`] them, [`Plane::begin`] with all Services, then
//!    load [`Plane::table`] if the kernel's differs, and commit [`Plane::repair`] of the dump. The
//!    same after a failed batch or somebody else's change.
//! 2. On each event: [`Plane::set`], commit [`Update::now`] as one batch, then delete the
//!    remembered clients of [`Update::forget`].
//! 3. Some milliseconds later: commit [`Plane::sweep`].

mod provision;
mod recover;

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use crate::{
    claims::{Claimant, Claims, Contest, claims},
    compile::{Frontend, PortPlan, ServicePlan},
    diff::{Changes, diff},
    elements::{Claim, PlacedPort, cluster_address},
    identities::Identities,
    layout::Identity,
    model::{Node, ServiceName, Target},
    nft::{Element, Family, Handle, Key, Name, Operation, Table},
    rules::{self, Settings},
    slots::place,
};

use provision::InUse;

/// The programmed Services of one family on one node.
#[derive(Clone, Debug)]
pub struct Plane {
    settings: Settings,
    node: Node,
    plans: HashMap<Arc<ServiceName>, ServicePlan>,
    claims: Claims,
    identities: Identities,
    slots: HashMap<Handle, Vec<Target>>,
    in_use: InUse,
    /// Elements that the kernel has and no packet finds any more.
    leftovers: HashMap<(Name, Key), Element>,
    /// Identities of ports that are gone; their leftovers may live.
    retired: Vec<Identity>,
    refused: BTreeSet<Frontend>,
}

/// The steps that program one Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// One atomic batch.
    pub now: Vec<Operation>,
    /// Endpoints whose clients are no longer remembered: after the batch, elements of the map
    /// `affinity` with this handle and endpoint are to be deleted.
    pub forget: Vec<(Handle, Target)>,
}

impl Plane {
    /// A plane without Services.
    pub fn new(settings: Settings, node: Node) -> Self {
        Self {
            settings,
            node,
            plans: HashMap::new(),
            claims: Claims::default(),
            identities: Identities::default(),
            slots: HashMap::new(),
            in_use: InUse::default(),
            leftovers: HashMap::new(),
            retired: Vec::new(),
            refused: BTreeSet::new(),
        }
    }

    /// The family of the addresses.
    pub fn family(&self) -> Family {
        self.settings.family
    }

    /// The name of the table.
    pub fn table_name(&self) -> &Name {
        &self.settings.table
    }

    /// The names of the programmed Services.
    pub fn services(&self) -> impl Iterator<Item = &Arc<ServiceName>> {
        self.plans.keys()
    }

    /// The table as it is with the programmed Services.
    pub fn table(&self) -> Table {
        rules::table(&self.settings, &self.node, self.in_use.provision())
    }

    /// All elements of the programmed Services and of the rules.
    pub fn elements(&self) -> Vec<Element> {
        let mut elements = rules::elements(&self.settings, &self.node, self.in_use.provision());
        for (name, plan) in &self.plans {
            self.add_elements(name, plan, &mut elements);
        }
        elements
    }

    /// The plan of a programmed Service.
    pub fn plan(&self, name: &ServiceName) -> Option<&ServicePlan> {
        self.plans.get(name)
    }

    /// Sets the plans of all Services of a plane that has none yet. The result is that of
    /// [`Plane::set`] for each, without the work for updates that nobody sends.
    pub fn begin(&mut self, plans: impl IntoIterator<Item = (Arc<ServiceName>, ServicePlan)>) {
        for (name, plan) in plans {
            for (claim, port) in claims(&plan) {
                let claimant = Claimant { created: plan.created, service: Arc::clone(&name), port };
                self.claims.add(claim, claimant);
            }
            self.plans.insert(name, plan);
        }
        let names = self.plans.keys().cloned().collect();
        self.place(&names);
        let elements = self.elements_of(&names);
        // The steps are those to a table that is loaded or compared as a whole.
        drop(self.in_use.change(&[], &elements));
    }

    /// Replaces the plan of a Service; without a plan the Service is removed.
    pub fn set(&mut self, name: &Arc<ServiceName>, plan: Option<ServicePlan>) -> Update {
        let touched = self.touched(name, plan.as_ref());
        let have = self.elements_of(&touched);
        let remembered_before = self.remembered_by(&touched);

        let before = self.plans.remove(name);
        let claimant =
            |plan: &ServicePlan, port| Claimant { created: plan.created, service: Arc::clone(name), port };
        if let Some(plan) = &before {
            for (claim, port) in claims(plan) {
                self.claims.remove(claim, &claimant(plan, port));
            }
        }
        if let Some(plan) = &plan {
            for (claim, port) in claims(plan) {
                self.claims.add(claim, claimant(plan, port));
            }
        }
        if let Some(plan) = plan {
            self.plans.insert(Arc::clone(name), plan);
        }
        self.retire(before.iter().flat_map(|plan| &plan.ports));
        self.place(&touched);

        let want = self.elements_of(&touched);
        let remembered_after = self.remembered_by(&touched);
        let forget = remembered_before.keys().filter(|pair| !remembered_after.contains_key(*pair));
        let forget: BTreeSet<_> = forget.copied().collect();
        let provision = self.in_use.change(&have, &want);
        let now = provision.surround(self.resolve(diff(have, want)));
        Update { now, forget: forget.into_iter().collect() }
    }

    /// Frontends that several Services claim.
    pub fn contests(&self) -> Vec<Contest> {
        self.claims.contests()
    }

    /// Ports that are not programmed, because all identities are in use.
    pub fn refused(&self) -> &BTreeSet<Frontend> {
        &self.refused
    }

    /// Deletes what earlier updates have left behind. No packet may still be on its way that has
    /// read a ruleset from before them, and the clients of their endpoints must be forgotten.
    pub fn sweep(&mut self) -> Vec<Operation> {
        for identity in self.retired.drain(..) {
            self.identities.free(identity);
        }
        let mut swept: Vec<Element> = self.leftovers.drain().map(|(_, element)| element).collect();
        swept.sort_unstable();
        swept.into_iter().map(Operation::DeleteElement).collect()
    }

    /// The Service and all others that it may give something to or take something from: those that
    /// claim something that it claims or has claimed, and so on.
    fn touched(&self, name: &Arc<ServiceName>, plan: Option<&ServicePlan>) -> BTreeSet<Arc<ServiceName>> {
        let mut touched = BTreeSet::from([Arc::clone(name)]);
        let mut pending: Vec<(&Arc<ServiceName>, &ServicePlan)> =
            self.plans.get(name).into_iter().chain(plan).map(|plan| (name, plan)).collect();
        while let Some((name, plan)) = pending.pop() {
            for other in claims(plan).flat_map(|(claim, _)| self.claims.others(claim, name)) {
                if touched.insert(Arc::clone(other)) {
                    pending.extend(self.plans.get(other).map(|plan| (other, plan)));
                }
            }
        }
        touched
    }

    fn elements_of(&self, names: &BTreeSet<Arc<ServiceName>>) -> Vec<Element> {
        let mut elements = Vec::new();
        for (name, plan) in names.iter().filter_map(|name| self.plans.get_key_value(name)) {
            self.add_elements(name, plan, &mut elements);
        }
        elements
    }

    fn add_elements(&self, name: &ServiceName, plan: &ServicePlan, elements: &mut Vec<Element>) {
        for port in &plan.ports {
            if self.claims.owns(Claim::Address(plan.cluster_ip), name, port.frontend) {
                elements.push(cluster_address(plan.cluster_ip));
            }
            if let Some(placed) = self.placed(name, port) {
                placed.elements(elements, |claim| self.claims.owns(claim, name, port.frontend));
            }
        }
    }

    /// The port with its identity and slots, if it is programmed.
    fn placed<'a>(&'a self, name: &ServiceName, plan: &'a PortPlan) -> Option<PlacedPort<'a>> {
        if !self.claims.owns(Claim::Cluster(plan.frontend), name, plan.frontend) {
            return None;
        }
        let identity = self.identities.get(plan.frontend)?;
        let slots = |handle| self.slots.get(&handle).map(Vec::as_slice).unwrap_or_default();
        let local = plan.local.is_some().then(|| slots(identity.local()));
        Some(PlacedPort { plan, identity, cluster: slots(identity.cluster()), local })
    }

    /// Gives identities and slots to the ports of Services.
    fn place(&mut self, names: &BTreeSet<Arc<ServiceName>>) {
        let plans = names.iter().filter_map(|name| self.plans.get_key_value(name));
        for (name, port) in plans.flat_map(|(name, plan)| plan.ports.iter().map(move |port| (name, port))) {
            if !self.claims.owns(Claim::Cluster(port.frontend), name, port.frontend) {
                continue;
            }
            let Ok(identity) = self.identities.obtain(port.frontend) else {
                self.refused.insert(port.frontend);
                continue;
            };
            self.refused.remove(&port.frontend);
            let local = port.local.as_ref().map(|wanted| (identity.local(), wanted));
            if local.is_none() {
                self.slots.remove(&identity.local());
            }
            for (handle, wanted) in [(identity.cluster(), &port.cluster)].into_iter().chain(local) {
                let before = self.slots.entry(handle).or_default();
                *before = place(before, wanted);
            }
        }
    }

    /// Takes identities from ports that nobody claims any more.
    fn retire<'a>(&mut self, ports: impl Iterator<Item = &'a PortPlan>) {
        for port in ports.filter(|port| !self.claims.is_claimed(Claim::Cluster(port.frontend))) {
            self.refused.remove(&port.frontend);
            if let Some(identity) = self.identities.retire(port.frontend) {
                self.slots.remove(&identity.cluster());
                self.slots.remove(&identity.local());
                self.retired.push(identity);
            }
        }
    }

    /// Endpoints whose clients are remembered, with the timeout.
    fn remembered_by(&self, names: &BTreeSet<Arc<ServiceName>>) -> HashMap<(Handle, Target), u32> {
        let plans = names.iter().filter_map(|name| self.plans.get_key_value(name));
        let ports = plans.flat_map(|(name, plan)| plan.ports.iter().map(move |port| (name, port)));
        let mut remembered = HashMap::new();
        for (name, port) in ports {
            if let Some(timeout) = port.affinity
                && let Some(placed) = self.placed(name, port)
            {
                for (handle, targets) in placed.sets() {
                    remembered.extend(targets.iter().map(|target| ((handle, *target), timeout)));
                }
            }
        }
        remembered
    }

    /// Accounts for leftovers: an addition may find one in its place, and deletions make new ones.
    fn resolve(&mut self, changes: Changes) -> Vec<Operation> {
        let mut in_the_way = Vec::new();
        let mut now = Vec::with_capacity(changes.now.len());
        for operation in changes.now {
            if !self.leftovers.is_empty()
                && let Operation::AddElement(element) = &operation
                && let Some(found) = self.leftovers.remove(&(element.set.clone(), element.key.clone()))
            {
                if found == *element {
                    continue;
                }
                in_the_way.push(Operation::DeleteElement(found));
            }
            now.push(operation);
        }
        in_the_way.append(&mut now);
        for element in changes.later {
            self.leftovers.insert((element.set.clone(), element.key.clone()), element);
        }
        in_the_way
    }
}

#[cfg(test)]
mod tests;
