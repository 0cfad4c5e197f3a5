//! Decides what the kernel should have next. Pure.
//!
//! A change of a Service costs what this Service costs: only Services that changed are looked at.
//! All of them are looked at when an object changed, and after a failure.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use isp_dataplane::model::{Service, ServiceName, View as Seen};
use isp_intake::services::KnownService;

use super::known::Known;
use super::preserved::{Decision, Preserved};

#[cfg(test)]
mod tests;

/// Which Services the agent serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Those that objects preserve.
    Preserved,
    /// Every Service, in full.
    All,
}

/// A Service to serve, with its endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) service: Service,
    pub(crate) decision: Decision,
    pub(crate) health_check_node_port: Option<u16>,
}

/// A Service to serve from now on in this way; `None` if it is not served any more.
pub(crate) type ServiceChange = (Arc<ServiceName>, Option<Served>);

/// What the kernel should have next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Everything has to be read, compared and written. There is no table without a Service.
    Everything(Vec<(Arc<ServiceName>, Served)>),
    /// These Services have changed.
    Some(Vec<ServiceChange>),
    Nothing,
}

/// The decisions so far.
#[derive(Debug)]
pub(crate) struct Serving {
    scope: Scope,
    preserved: Preserved,
    /// Whether every Service has to be decided again.
    decides_anew: bool,
    programmed: BTreeMap<Arc<ServiceName>, Decision>,
    /// The ClusterIPs that the agent before this one served, until everything was decided once.
    inherited: HashSet<IpAddr>,
    looked_at: u64,
}

impl Default for Serving {
    fn default() -> Self {
        Self {
            scope: Scope::Preserved,
            preserved: Preserved::default(),
            decides_anew: false,
            programmed: BTreeMap::new(),
            inherited: HashSet::new(),
            looked_at: 0,
        }
    }
}

impl Serving {
    /// Decides by these objects from now on.
    pub(crate) fn follow(&mut self, scope: Scope, preserved: Preserved) {
        if (self.scope, &self.preserved) != (scope, &preserved) {
            (self.scope, self.preserved, self.decides_anew) = (scope, preserved, true);
        }
    }

    /// Goes on where another agent ended, which served these ClusterIPs.
    pub(crate) fn succeed(&mut self, cluster_ips: HashSet<IpAddr>) {
        self.inherited = cluster_ips;
    }

    /// The number of Services that were looked at so far.
    pub(crate) fn looked_at(&self) -> u64 {
        self.looked_at
    }

    /// Decides what to write, and counts it as written. After a failure, everything has to be
    /// written: `is_synchronized` is false then.
    pub(crate) fn next(&mut self, known: &mut Known, is_synchronized: bool) -> Next {
        let reported = known.take_changed();
        let decides_anew = std::mem::take(&mut self.decides_anew);
        if !is_synchronized {
            return self.everything(known);
        }
        let touched = if decides_anew { self.decided_otherwise(known, reported) } else { reported };
        let mut changes = Vec::with_capacity(touched.len());
        for name in touched {
            let served = self.look_at(known, &name);
            if served.is_some() || self.programmed.contains_key(&name) {
                changes.push((name, served));
            }
        }
        if changes.is_empty() {
            return Next::Nothing;
        }
        // The first Service creates the tables, and the last one takes them along.
        let gone = changes.iter().filter(|(_, served)| served.is_none()).count();
        let is_last = gone == changes.len() && gone == self.programmed.len();
        if self.programmed.is_empty() || is_last {
            return self.everything(known);
        }
        for (name, served) in &changes {
            match served {
                Some(served) => drop(self.programmed.insert(name.clone(), served.decision.clone())),
                None => drop(self.programmed.remove(name)),
            }
        }
        Next::Some(changes)
    }

    fn everything(&mut self, known: &Known) -> Next {
        let names: Vec<_> = known.all().cloned().collect();
        let all: Vec<_> =
            names.into_iter().filter_map(|name| Some((name.clone(), self.look_at(known, &name)?))).collect();
        self.programmed = all.iter().map(|(name, served)| (name.clone(), served.decision.clone())).collect();
        self.inherited = HashSet::new();
        Next::Everything(all)
    }

    /// The Services that the objects decide about in another way than before, and the given ones.
    fn decided_otherwise(
        &mut self,
        known: &Known,
        mut touched: BTreeSet<Arc<ServiceName>>,
    ) -> BTreeSet<Arc<ServiceName>> {
        for name in known.all() {
            self.looked_at += 1;
            let decision = known.service(name).and_then(|service| self.decide(name, service));
            if decision.as_ref() != self.programmed.get(name) {
                touched.insert(name.clone());
            }
        }
        touched.extend(self.programmed.keys().filter(|name| known.service(name).is_none()).cloned());
        touched
    }

    fn look_at(&mut self, known: &Known, name: &ServiceName) -> Option<Served> {
        self.looked_at += 1;
        let service = known.service(name)?;
        let decision = self.decide(name, service)?;
        let health_check_node_port = service.health_check_node_port;
        Some(Served { service: known.with_endpoints(name)?, decision, health_check_node_port })
    }

    /// Decides about a Service. If its object is gone without having given it back, because
    /// somebody removed the finalizer, the agent goes on serving it for as long as kube-proxies may
    /// skip it, and so does the agent after it. None begins to serve such a Service: everyone who
    /// may write Services can make one.
    fn decide(&self, name: &ServiceName, service: &KnownService) -> Option<Decision> {
        let decision = self.preserved.decide(name, &service.labels);
        let was_served = || self.programmed.contains_key(name) || service.has_cluster_ip_of(&self.inherited);
        let goes_on = || service.depends_on_agent && was_served();
        match self.scope {
            Scope::Preserved => {
                decision.or_else(|| goes_on().then(|| Decision { view: Seen::Full, objects: Vec::new() }))
            }
            Scope::All => {
                let objects = decision.map(|decision| decision.objects).unwrap_or_default();
                Some(Decision { view: Seen::Full, objects })
            }
        }
    }
}
