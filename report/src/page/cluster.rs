//! The Services with their addresses, and the nodes by pool.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::markup::{badge, escape};
use crate::model::{Node, Report, Role, WayKind};

pub(super) fn services(page: &mut String, report: &Report) {
    if report.services.is_empty() {
        return;
    }
    page.push_str(
        "<section id=\"services\"><h2>Services</h2>\n<div class=\"scroll\" role=\"group\" aria-label=\"Services\" tabindex=\"0\">\
         <table><thead><tr><th scope=\"col\">Service</th><th scope=\"col\">Type</th>\
         <th scope=\"col\">Addresses</th>",
    );
    for stage in &report.stages {
        let _ = write!(page, "<th scope=\"col\">{}</th>", escape(&stage.label));
    }
    page.push_str("</tr></thead><tbody>\n");
    for service in &report.services {
        let _ = write!(
            page,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td><ul class=\"plain\">",
            escape(&service.name),
            escape(&service.kind)
        );
        for way in &service.ways {
            let kind = match way.kind {
                WayKind::ClusterIp => "ClusterIP",
                WayKind::External => "External",
                WayKind::NodePort => "NodePort",
            };
            let _ = write!(page, "<li>{kind} {}</li>", escape(&way.address));
        }
        page.push_str("</ul></td>");
        for (policy, object) in service.policies.iter().zip(&service.objects) {
            let _ = write!(page, "<td>externalTrafficPolicy {}", escape(policy));
            match object {
                Some(name) => {
                    let _ = write!(page, "<span class=\"line\">preserved by {}</span></td>", escape(name));
                }
                None => page.push_str("<span class=\"line\">not preserved</span></td>"),
            }
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div></section>\n");
}

pub(super) fn nodes(page: &mut String, report: &Report) {
    page.push_str("<section id=\"nodes\"><h2>Nodes</h2>\n");
    let mut pools: BTreeMap<(Role, &str), Vec<&Node>> = BTreeMap::new();
    for node in &report.nodes {
        pools.entry((node.role, node.pool.as_str())).or_default().push(node);
    }
    for ((role, pool), nodes) in pools {
        let ready = nodes.iter().filter(|node| node.ready).count();
        let open = if nodes.len() <= 12 { " open" } else { "" };
        let state = if ready == nodes.len() {
            badge("preserved", "\u{2713}", &format!("{ready} ready"))
        } else {
            badge("unreachable", "!", &format!("{} of {} not ready", nodes.len() - ready, nodes.len()))
        };
        let _ = writeln!(
            page,
            "<details{open} data-pool=\"{0} {3}\"><summary>pool {0}: {1} {2} <span class=\"role\">{3}</span> {state}</summary>\
             <div class=\"scroll\" role=\"group\" aria-label=\"Nodes of pool {0}\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">Node</th>\
             <th scope=\"col\">Addresses</th><th scope=\"col\">State</th></tr></thead><tbody>",
            escape(pool),
            nodes.len(),
            if nodes.len() == 1 { "node" } else { "nodes" },
            describe(role)
        );
        for node in nodes {
            let state = if node.ready { "ready" } else { "not ready" };
            let remark = if node.remark.is_empty() { String::new() } else { format!("; {}", node.remark) };
            let _ = writeln!(
                page,
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{state}{}</td></tr>",
                escape(&node.name),
                escape(&node.addresses.join(", ")),
                escape(&remark)
            );
        }
        page.push_str("</tbody></table></div></details>\n");
    }
    page.push_str("</section>\n");
}

fn describe(role: Role) -> &'static str {
    match role {
        Role::Ingress => "ingress",
        Role::NonIngress => "non-ingress, with agent",
        Role::Agentless => "non-ingress, without agent",
    }
}
