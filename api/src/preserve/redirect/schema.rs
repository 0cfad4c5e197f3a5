//! Schemas of ports, destinations and identities, and the rules for ports. Every list and text is
//! bounded, because each of them becomes an argument of the init container, and CEL has a cost
//! budget.

use kube::core::Rule;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::rules;

/// The longest CIDR range: an IPv6 address with an embedded IPv4 address, and its length.
const LONGEST_RANGE: usize = 49;
const MOST_PORTS: usize = 64;
const MOST_DESTINATIONS: usize = 32;
const MOST_IDS: usize = 16;

pub(super) fn port(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 1, "maximum": 65535})
}

pub(super) fn ports(_: &mut SchemaGenerator) -> Schema {
    set(MOST_PORTS, &json!({"type": "integer", "minimum": 1, "maximum": 65535}))
}

/// Named ports leave nothing to except.
pub(super) fn either_ports_or_except_ports() -> Rule {
    rules::rule(
        "!has(self.ports) || !has(self.exceptPorts)",
        "'port %d cannot be excepted, because ports already names what is redirected: remove exceptPorts, or remove ports to redirect all \
         others'.format([self.exceptPorts[0]])",
    )
    .field_path(".exceptPorts")
}

/// The ports are those of others, not the proxy's own.
pub(super) fn ports_of(others: &str) -> Rule {
    let message = format!(
        "'%d is the port of the proxy itself: remove it, these are the ports of {others}'.format([self.port])"
    );
    rules::rule("!has(self.ports) || !(self.port in self.ports)", &message).field_path(".ports")
}

/// User and group IDs, as Kubernetes limits `runAsUser`.
pub(super) fn ids(_: &mut SchemaGenerator) -> Schema {
    set(MOST_IDS, &json!({"type": "integer", "format": "int64", "minimum": 0, "maximum": i32::MAX}))
}

/// Without 0, which every socket has that sets no mark.
pub(super) fn marks(_: &mut SchemaGenerator) -> Schema {
    set(MOST_IDS, &json!({"type": "integer", "format": "int64", "minimum": 1, "maximum": u32::MAX}))
}

/// Without 0, which every process has that is in no class.
pub(super) fn class(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int64", "minimum": 1, "maximum": u32::MAX})
}

pub(super) fn path(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": 255,
        "x-kubernetes-validations": [rules::rule(
            "self.matches('^[^/,\"\\\\s]+(/[^/,\"\\\\s]+)*$') && !self.split('/').exists(p, p in ['.', '..'])",
            "'\"' + self + '\" is not a cgroup path: use names without commas and spaces, separated by single slashes and relative to the root, as in proxy/envoy'",
        )],
    })
}

/// IP addresses and CIDR ranges, other than the loopback.
pub(super) fn destinations(_: &mut SchemaGenerator) -> Schema {
    let rules = [
        rules::rule(
            "isCIDR(self) || isIP(self)",
            "'\"' + self + '\" is not an IP address or a CIDR range: use one such as 10.96.0.0/12 or 2001:db8::1; names of hosts are not \
             resolved'",
        ),
        rules::rule(
            "!isCIDR(self) || cidr(self) == cidr(self).masked()",
            "'\"' + self + '\" has bits behind its prefix: use the first address of the range, as in 10.0.0.0/8'",
        ),
        rules::rule(
            "isCIDR(self) ? !cidr(self).ip().isLoopback() : !isIP(self) || !ip(self).isLoopback()",
            "'\"' + self + '\" is the loopback, which is never redirected: remove it'",
        ),
    ];
    let item = json!({"type": "string", "maxLength": LONGEST_RANGE, "x-kubernetes-validations": rules});
    set(MOST_DESTINATIONS, &item)
}

/// A list without duplicates. Empty lists are rejected: unset means everything, and a template that
/// renders an empty list most likely means nothing.
fn set(most: usize, items: &Value) -> Schema {
    json_schema!({
        "type": "array",
        "minItems": 1,
        "maxItems": most,
        "items": items,
        "x-kubernetes-list-type": "set",
    })
}
