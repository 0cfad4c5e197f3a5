//! Which port of which Service has a frontend that several claim.
//!
//! A ClusterIP or NodePort is unique, except for the moment in which a Service replaces another and
//! the new one is seen first. External IPs are whatever users write. The oldest Service has the
//! frontend, and of two that were created in the same second, the first by name. When it goes, the
//! next one gets the frontend. So the result depends on the Services that exist and not on the
//! order in which they came. A port that does not have its ClusterIP has no identity, so it has
//! nothing else either.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::Arc,
};

use crate::{
    compile::{Frontend, ServicePlan},
    elements::Claim,
    model::ServiceName,
};

/// A port of a Service. The order is from the oldest to the newest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claimant {
    pub(crate) created: i64,
    pub(crate) service: Arc<ServiceName>,
    pub(crate) port: Frontend,
}

/// A frontend that several Services claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Contest {
    /// The frontend.
    pub claim: Claim,
    /// The Service that has it. None if no claimant has its ClusterIP.
    pub owner: Option<Arc<ServiceName>>,
    /// The Services that do not get it.
    pub others: Vec<Arc<ServiceName>>,
}

impl fmt::Display for Contest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others: Vec<String> = self.others.iter().map(ToString::to_string).collect();
        write!(out, "{} of {}", self.claim, others.join(", "))?;
        match &self.owner {
            Some(owner) => write!(out, " belongs to the older Service {owner}"),
            None => write!(out, " belongs to no Service"),
        }
    }
}

/// All claims, each with its claimants in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims {
    claimants: HashMap<Claim, Vec<Claimant>>,
    /// Those with claimants of several Services.
    contested: BTreeSet<Claim>,
}

impl Claims {
    /// Tells whether a port of a Service has what it claims.
    pub(crate) fn owns(&self, claim: Claim, service: &ServiceName, port: Frontend) -> bool {
        self.owner(claim).is_some_and(|owner| *owner.service == *service && owner.port == port)
    }

    fn owner(&self, claim: Claim) -> Option<&Claimant> {
        let claimants = self.claimants.get(&claim)?;
        match claim {
            Claim::Cluster(_) | Claim::Address(_) => claimants.first(),
            Claim::External(_) | Claim::NodePort(..) => {
                claimants.iter().find(|each| self.owner(Claim::Cluster(each.port)) == Some(*each))
            }
        }
    }

    /// Tells whether anyone claims it.
    pub(crate) fn is_claimed(&self, claim: Claim) -> bool {
        self.claimants.contains_key(&claim)
    }

    /// Returns the other Services that claim it.
    pub(crate) fn others<'a>(
        &'a self,
        claim: Claim,
        service: &'a ServiceName,
    ) -> impl Iterator<Item = &'a Arc<ServiceName>> {
        let claimants = self.claimants.get(&claim).map(Vec::as_slice).unwrap_or_default();
        claimants.iter().map(|each| &each.service).filter(move |each| ***each != *service)
    }

    /// Returns the frontends that several Services claim, sorted. A ClusterIP as a whole is not
    /// listed besides its ports.
    pub(crate) fn contests(&self) -> Vec<Contest> {
        let frontends = self.contested.iter().filter(|claim| !matches!(claim, Claim::Address(_)));
        let contest = |claim: &Claim| {
            let owner = self.owner(*claim).map(|owner| Arc::clone(&owner.service));
            let claimants = self.claimants.get(claim).map(Vec::as_slice).unwrap_or_default();
            let others: BTreeSet<_> = claimants.iter().map(|each| &each.service).collect();
            let others = others.into_iter().filter(|each| Some(*each) != owner.as_ref()).cloned();
            Contest { claim: *claim, others: others.collect(), owner }
        };
        frontends.map(contest).collect()
    }

    pub(crate) fn add(&mut self, claim: Claim, claimant: Claimant) {
        // Nearly always there is one.
        let claimants = self.claimants.entry(claim).or_insert_with(|| Vec::with_capacity(1));
        if let Err(place) = claimants.binary_search(&claimant) {
            claimants.insert(place, claimant);
        }
        self.note(claim);
    }

    pub(crate) fn remove(&mut self, claim: Claim, claimant: &Claimant) {
        if let Some(claimants) = self.claimants.get_mut(&claim) {
            claimants.retain(|each| each != claimant);
            if claimants.is_empty() {
                self.claimants.remove(&claim);
            }
        }
        self.note(claim);
    }

    fn note(&mut self, claim: Claim) {
        let claimants = self.claimants.get(&claim).map(Vec::as_slice).unwrap_or_default();
        if claimants.windows(2).any(|pair| pair[0].service != pair[1].service) {
            self.contested.insert(claim);
        } else {
            self.contested.remove(&claim);
        }
    }
}

/// Everything that a planned Service claims, by port.
pub(crate) fn claims(plan: &ServicePlan) -> impl Iterator<Item = (Claim, Frontend)> + '_ {
    plan.ports.iter().flat_map(|port| {
        let frontend = port.frontend;
        let external = port
            .external_ips
            .iter()
            .map(move |address| Claim::External(Frontend { address: *address, ..frontend }));
        let node_port = port.node_port.map(|number| Claim::NodePort(frontend.protocol, number));
        [Claim::Cluster(frontend), Claim::Address(frontend.address)]
            .into_iter()
            .chain(external)
            .chain(node_port)
            .map(move |claim| (claim, frontend))
    })
}
