//! The agents of an object, and the nodes whose agent does not do what it should.

use std::collections::BTreeSet;

use isp_api::IngressSourceNode;
use isp_api::node::{AgentMode, IngressSourceNodeStatus};
use isp_api::preserve::{IngressSourcePreserveStatus, Mode, PoolStatus};
use isp_api::view::View;
use kube::ResourceExt;

use super::{HINT, ObjectReport};
use crate::status::nodes::wanted_view;
use crate::status::{Wanted, unserved};
use crate::text::{count, cut};

const MAX_NODES: usize = 5;

impl ObjectReport<'_> {
    /// A line for each pool, or for all agents of mode Beside, and the nodes that are behind.
    pub(super) fn pools(&self, status: &IngressSourcePreserveStatus) -> Vec<String> {
        let max = self.max(MAX_NODES);
        let indented = |lines: Vec<String>| cut(lines, max, HINT).into_iter().map(|line| format!("  {line}"));
        let mut lines: Vec<String> = Vec::new();
        for pool in &status.node_pools {
            lines.push(pool_line(self.object.spec.mode, pool));
            let (mode, name) = match self.object.spec.mode {
                Mode::Filter => (AgentMode::Filter, Some(&pool.name)),
                Mode::Beside => (AgentMode::Beside, None),
            };
            let of_pool =
                self.reports(mode).filter(|(_, report)| name.is_none_or(|name| report.pool == *name));
            let mut behind: Vec<String> =
                of_pool.filter_map(|(node, report)| self.behind(node, report)).collect();
            if mode == AgentMode::Beside {
                behind.extend(self.silent(status));
                behind.sort_unstable();
            }
            lines.extend(indented(behind));
        }
        if lines.is_empty() {
            lines.push("no node needs an agent".to_owned());
        }
        let strays = self.strays(status);
        if !strays.is_empty() {
            lines.push("in no pool of this object:".to_owned());
            lines.extend(indented(strays));
        }
        lines
    }

    /// The nodes and reports of agents of this mode.
    fn reports(&self, mode: AgentMode) -> impl Iterator<Item = (&str, &IngressSourceNodeStatus)> {
        let status = move |report: &'_ IngressSourceNode| {
            report.status.as_ref().is_some_and(|status| status.mode == mode)
        };
        self.context.reports.iter().filter(move |report| status(report)).filter_map(move |report| {
            Some((mode.node_of(report.metadata.name.as_deref()?)?, report.status.as_ref()?))
        })
    }

    /// The agents of pools that the object does not have.
    fn strays(&self, status: &IngressSourcePreserveStatus) -> Vec<String> {
        if self.object.spec.mode == Mode::Beside {
            // It has no pools; agents of other objects do not disturb it.
            return Vec::new();
        }
        let pools = self.object.spec.pools();
        let known = |pool: &String| {
            let reported = status.node_pools.iter().any(|known| known.name == *pool);
            reported || pools.iter().any(|known| known.name == *pool)
        };
        let strays = self.reports(AgentMode::Filter).filter(|(_, report)| !known(&report.pool));
        let strays = strays.filter(|(node, _)| self.wanted(node).view != View::Full);
        strays.map(|(node, report)| format!("{node}: has an agent of pool {}", report.pool)).collect()
    }

    fn wanted(&self, node: &str) -> Wanted {
        Wanted {
            mode: self.object.spec.mode,
            view: wanted_view(self.object, self.context.nodes, node),
            generation: self.object.metadata.generation.unwrap_or_default(),
        }
    }

    /// What the agent of a node has not acknowledged.
    fn behind(&self, node: &str, report: &IngressSourceNodeStatus) -> Option<String> {
        if self.context.nodes.as_ref().is_some_and(|nodes| !nodes.contains_key(node)) {
            return Some(format!("{node}: the node no longer exists, and its report is left"));
        }
        let uid = self.object.uid().unwrap_or_default();
        let wanted = self.wanted(node);
        let acknowledged = report.views.iter().find(|view| view.uid == uid);
        // An ingress node that shows everything has its agent for the sake of other objects.
        let concerned = wanted.is_owed() || acknowledged.is_some_and(|view| view.view != View::Full);
        if concerned && !report.active {
            let line = match wanted.mode {
                Mode::Filter => "kube-proxy is not connected to the agent",
                Mode::Beside => "the agent has not programmed the kernel",
            };
            return Some(format!("{node}: {line}"));
        }
        let lag = wanted.lag(acknowledged).or_else(|| unserved(self.object, acknowledged?));
        lag.map(|lag| format!("{node}: {lag}"))
    }

    /// Mode Beside: the nodes whose agent does not report. Every node needs one that is not left
    /// out.
    fn silent(&self, status: &IngressSourcePreserveStatus) -> Vec<String> {
        let reporting: BTreeSet<&str> = self.reports(AgentMode::Beside).map(|(node, _)| node).collect();
        let left_out = status.left_out.as_ref();
        // The operator names some of the nodes that it leaves out, and counts all.
        let some_unnamed =
            left_out.is_some_and(|all| usize::try_from(all.count).unwrap_or(usize::MAX) > all.nodes.len());
        let is_left_out = |name: &String| left_out.is_some_and(|left_out| left_out.nodes.contains(name));
        let begun = status.node_pools.iter().any(|agents| agents.handed_over > 0);
        if some_unnamed || !begun {
            return Vec::new();
        }
        let names = self.context.nodes.iter().flatten().map(|(name, _)| name);
        let silent = names.filter(|name| !reporting.contains(name.as_str()) && !is_left_out(name));
        let line = |name: &String| match self.wanted(name).view {
            View::Full => format!("{name}: no agent reports; it is an ingress node"),
            View::ClusterOnly | View::Hidden => format!("{name}: no agent reports"),
        };
        silent.map(line).collect()
    }
}

fn pool_line(mode: Mode, pool: &PoolStatus) -> String {
    let PoolStatus { name, nodes, handed_over, ready, failed, updated } = pool;
    let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
    let outdated = updated.map_or(0, |updated| handed_over.saturating_sub(updated));
    let outdated = if outdated > 0 { format!(", {outdated} on a previous revision") } else { String::new() };
    let nodes = count(*nodes, "node");
    let verb = if *handed_over == 1 { "has" } else { "have" };
    let agents = match mode {
        Mode::Filter => format!("pool {name}"),
        Mode::Beside => "mode Beside".to_owned(),
    };
    format!("{agents}: {nodes}, {handed_over} {verb} an agent, {ready} ready{outdated}{failed}")
}
