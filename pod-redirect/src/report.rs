//! What is in force, for the log of the container: a file that `nft` reads, with the routing and
//! the rest as comments.

use std::fmt::Write as _;

use isp_dataplane::nft::Family;
use isp_dataplane::text::render;

use crate::program::Wanted;

pub(crate) fn text(wanted: &Wanted) -> String {
    let mut out = String::from("# In force, and read back from the kernel:\n");
    for rules in &wanted.rules {
        out.push_str(&render(&rules.table, &rules.elements));
    }
    for routing in &wanted.routing {
        for command in routing.to_string().lines() {
            // Writing to a string does not fail.
            let _ = writeln!(out, "# {command}");
        }
    }
    if !wanted.rules.iter().any(|rules| rules.table.family == Family::Ip6) {
        out.push_str("# No interface of this pod has IPv6, so there are no rules for it.\n");
    }
    out
}
