//! Counts: how many cases of which kind there were, and how they ended. Every kind must occur.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::cases::{Case, SourceKind, Target};
use crate::observed::{End, Observed};
use crate::services::{Exposure, Generated, Layout, Policy, Protocol};
use crate::traced::{Expected, Traced};

/// The ends that a run must have.
const ENDS: [&str; 5] = ["source kept", "source replaced", "refused", "dropped, no answer", "unclear"];

#[derive(Debug, Default)]
pub(crate) struct Figures {
    /// Cases that agree.
    pub(crate) agreed: usize,
    pub(crate) connections: usize,
    pub(crate) tried_again: usize,
    pub(crate) differences: Vec<String>,
    /// By property and value.
    counts: BTreeMap<&'static str, BTreeMap<String, usize>>,
}

impl Figures {
    /// Counts a case on which trace and connections agree.
    pub(crate) fn take(&mut self, case: &Case, service: &Generated, traced: &Traced, observed: &Observed) {
        self.agreed += 1;
        self.count("client", &case.kind);
        self.count("destination", &case.target);
        self.count("exposure", &service.exposure);
        self.count("externalTrafficPolicy", &service.external);
        self.count("internalTrafficPolicy", &service.internal);
        self.count("session affinity", &service.sticky);
        self.count("protocol", &service.protocol);
        self.count("endpoints", &service.layout);
        self.count("preserved", &service.owned);
        for end in ends(traced, observed) {
            self.add("end", end.to_owned());
        }
        for end in observed.ends.iter().filter(|end| matches!(end, End::Answered { .. })) {
            let is_likely = traced.ends.iter().any(|known| known.names_source_of(end));
            self.add("source", if is_likely { "the likely one" } else { "another of the node" }.to_owned());
        }
    }

    /// Counts a value of a property.
    pub(crate) fn count(&mut self, property: &'static str, value: &dyn fmt::Debug) {
        self.add(property, format!("{value:?}"));
    }

    fn add(&mut self, property: &'static str, value: String) {
        *self.counts.entry(property).or_default().entry(value).or_default() += 1;
    }

    /// Fails if a kind of case did not occur.
    pub(crate) fn expect_every_kind(&self) {
        self.expect_all("client", &SourceKind::ALL);
        self.expect_all("destination", &Target::ALL);
        self.expect_all("exposure", &Exposure::ALL);
        self.expect_all("externalTrafficPolicy", &[Policy::Cluster, Policy::Local]);
        self.expect_all("internalTrafficPolicy", &[Policy::Cluster, Policy::Local]);
        self.expect_all("session affinity", &[false, true]);
        self.expect_all("protocol", &[Protocol::Tcp, Protocol::Udp]);
        self.expect_all("endpoints", &Layout::ALL);
        self.expect_all("preserved", &[false, true]);
        let found = self.counts.get("end");
        let missing: Vec<_> =
            ENDS.iter().filter(|end| !found.is_some_and(|found| found.contains_key(**end))).collect();
        assert!(missing.is_empty(), "no case ended so: {missing:?}");
    }

    fn expect_all(&self, property: &'static str, values: &[impl fmt::Debug]) {
        let found = self.counts.get(property);
        for value in values.iter().map(|value| format!("{value:?}")) {
            assert!(found.is_some_and(|found| found.contains_key(&value)), "no case with {property} {value}");
        }
    }
}

/// The ends of a case, each once.
fn ends(traced: &Traced, observed: &Observed) -> BTreeSet<&'static str> {
    if traced.ends.iter().any(|end| matches!(end, Expected::Unclear(_))) {
        return ["unclear"].into();
    }
    let name = |end: &End| match end {
        End::Answered { source, .. } if *source == traced.own => "source kept",
        End::Answered { .. } => "source replaced",
        End::Refused => "refused",
        End::TimedOut => "dropped, no answer",
        End::Unreachable => "dropped, unreachable",
        End::NotPermitted => "datagram not permitted",
        End::Other(_) => "other",
    };
    observed.ends.iter().map(name).collect()
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agreed, connections, tried_again, differences, counts } = self;
        writeln!(
            f,
            "{agreed} cases agree, {} differ; {connections} connections, {tried_again} cases tried again",
            differences.len()
        )?;
        for (property, values) in counts {
            let values: Vec<String> =
                values.iter().map(|(value, count)| format!("{value} {count}")).collect();
            writeln!(f, "  {property}: {}", values.join(", "))?;
        }
        Ok(())
    }
}
