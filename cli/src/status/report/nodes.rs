//! The pools of an object, and the nodes whose agent does not do what it should.

use isp_api::IngressSourceNode;
use isp_api::preserve::{IngressSourcePreserveStatus, PoolStatus};
use isp_api::view::View;
use kube::ResourceExt;

use super::{HINT, ObjectReport};
use crate::status::lag;
use crate::status::nodes::wanted_view;
use crate::text::{count, cut};

const MAX_NODES: usize = 5;

impl ObjectReport<'_> {
    pub(super) fn pools(&self, status: &IngressSourcePreserveStatus) -> Vec<String> {
        let max = self.max(MAX_NODES);
        let indented = |lines: Vec<String>| cut(lines, max, HINT).into_iter().map(|line| format!("  {line}"));
        let mut lines: Vec<String> = Vec::new();
        for pool in &status.node_pools {
            lines.push(pool_line(pool));
            let of_pool = self.context.reports.iter().filter(|report| pool_of(report) == Some(&pool.name));
            lines.extend(indented(of_pool.filter_map(|report| self.behind(report)).collect()));
        }
        if lines.is_empty() {
            lines.push("no node needs an agent".to_owned());
        }
        let pools = self.object.spec.pools();
        let known = |pool: &String| {
            let reported = status.node_pools.iter().any(|known| known.name == *pool);
            reported || pools.iter().any(|known| known.name == *pool)
        };
        let strays = self.context.reports.iter().filter_map(|report| {
            let pool = pool_of(report).filter(|pool| !known(pool))?;
            let name = report.name_any();
            (self.wanted(&name) != View::Full).then(|| format!("{name}: has an agent of pool {pool}"))
        });
        let strays: Vec<String> = strays.collect();
        if !strays.is_empty() {
            lines.push("in no pool of this object:".to_owned());
            lines.extend(indented(strays));
        }
        lines
    }

    fn wanted(&self, node: &str) -> View {
        wanted_view(self.object, self.context.nodes, node)
    }

    /// What the agent of a node has not acknowledged.
    fn behind(&self, report: &IngressSourceNode) -> Option<String> {
        let status = report.status.as_ref()?;
        let name = report.name_any();
        if self.context.nodes.as_ref().is_some_and(|nodes| !nodes.contains_key(&name)) {
            return Some(format!("{name}: the node no longer exists, and its report is left"));
        }
        let uid = self.object.uid().unwrap_or_default();
        let generation = self.object.metadata.generation.unwrap_or_default();
        let wanted = self.wanted(&name);
        let acknowledged = status.views.iter().find(|view| view.uid == uid);
        // An ingress node that shows everything has its agent for the sake of other objects.
        let concerned = wanted != View::Full || acknowledged.is_some_and(|view| view.view != View::Full);
        if concerned && !status.proxy_connected {
            return Some(format!("{name}: kube-proxy is not connected to the agent"));
        }
        lag(acknowledged, wanted, generation).map(|lag| format!("{name}: {lag}"))
    }
}

fn pool_of(report: &IngressSourceNode) -> Option<&String> {
    report.status.as_ref().map(|status| &status.pool)
}

fn pool_line(pool: &PoolStatus) -> String {
    let PoolStatus { name, nodes, handed_over, ready, failed, updated } = pool;
    let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
    let outdated = updated.map_or(0, |updated| handed_over.saturating_sub(updated));
    let outdated = if outdated > 0 { format!(", {outdated} on a previous revision") } else { String::new() };
    let nodes = count(*nodes, "node");
    let verb = if *handed_over == 1 { "has" } else { "have" };
    format!("pool {name}: {nodes}, {handed_over} {verb} an agent, {ready} ready{outdated}{failed}")
}
