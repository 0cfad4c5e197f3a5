//! Pods whose own proxy container gets the connections of the pod, without a mesh.
//!
//! Rules that one entry can break are here, in the schema and in CEL. Messages quote numbers by
//! `format`: the size of a number as text is unknown to CEL's cost estimate, so that adding more
//! text to it would exceed the budget.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rules;

mod schema;

/// Redirects connections of a pod to a proxy that runs in one of its own containers. An init
/// container writes the packet rules of the pod's network and ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(validation = Rule::new("has(self.inbound) || has(self.outbound)").message(
    "redirects nothing: give inbound, outbound or both",
))]
#[x_kube(validation = rules::rule(
    "!has(self.outbound) || has(self.exempt) \
     || (has(self.outbound.destinations) && !self.outbound.destinations.exists(d, d.endsWith('/0')))",
    "'all outbound connections are redirected to port %d and nobody is exempt, so the connections of the proxy itself return to it, in a \
     loop, until it fails: exempt the proxy by uids, gids, marks or cgroup, or redirect only named outbound.destinations'\
     .format([self.outbound.port])",
).field_path(".exempt"))]
#[serde(rename_all = "camelCase")]
pub struct Redirect {
    /// Connections that reach the pod from outside. Unset: they are not redirected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbound: Option<Inbound>,

    /// Connections that the pod's containers open. Unset: they are not redirected. Connections
    /// over the loopback are never redirected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outbound: Option<Outbound>,

    /// How the rules recognise the proxy. Its own outbound connections are not redirected. If it
    /// connects to the application with the client's address as source, the replies come back to
    /// it. Needed with `outbound`, unless that names its destinations: otherwise the proxy's own
    /// connections would return to it in a loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exempt: Option<Exempt>,

    /// When the init container runs. `First`: before all other init containers. `Last`: after them,
    /// and after native sidecars have started. With `First`, the outbound connections of other init
    /// containers are redirected, too, so the proxy must be a native sidecar if they need the
    /// network.
    #[serde(default)]
    pub init_order: InitOrder,
}

/// How connections reach the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Method {
    /// The proxy listens transparently (`IP_TRANSPARENT`), as Envoy and HAProxy can. Its container
    /// needs the capability `NET_ADMIN` or `NET_RAW` for that.
    #[serde(rename = "TPROXY")]
    Tproxy,
    /// The proxy listens as usual. The kernel changes the destination; the source stays.
    #[serde(rename = "REDIRECT")]
    Redirect,
}

impl Method {
    /// The name, as in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tproxy => "TPROXY",
            Self::Redirect => "REDIRECT",
        }
    }
}

/// Connections that reach the pod from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(validation = schema::either_ports_or_except_ports())]
#[x_kube(validation = schema::ports_of("the application"))]
#[serde(rename_all = "camelCase")]
pub struct Inbound {
    /// How connections reach the proxy. `TPROXY`: the proxy listens transparently, as Envoy and
    /// HAProxy can; its container needs the capability `NET_ADMIN` or `NET_RAW`. `REDIRECT`: for
    /// proxies that cannot, such as nginx. With both, the proxy sees the client's address.
    pub method: Method,

    /// The port on which the proxy accepts these connections.
    #[schemars(schema_with = "schema::port")]
    pub port: u16,

    /// The TCP ports whose connections are redirected. Unset: all except `exceptPorts`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::ports")]
    pub ports: Vec<u16>,

    /// TCP ports whose connections reach the application directly, for example a port for metrics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::ports")]
    pub except_ports: Vec<u16>,
}

/// Connections that the pod's containers open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(validation = schema::either_ports_or_except_ports())]
#[x_kube(validation = schema::ports_of("other programs"))]
#[x_kube(validation = rules::rule(
    "!has(self.exceptDestinations) || !self.exceptDestinations.exists(d, d.endsWith('/0'))",
    "'\"' + self.exceptDestinations.filter(d, d.endsWith('/0'))[0] + '\" excepts every destination, so nothing is left to redirect: name the \
     destinations to except, or remove outbound'",
).field_path(".exceptDestinations"))]
#[x_kube(validation = rules::rule(
    "!has(self.destinations) || !has(self.exceptDestinations) \
     || !self.exceptDestinations.exists(d, d in self.destinations)",
    "'\"' + self.exceptDestinations.filter(d, d in self.destinations)[0] + '\" is in destinations and in exceptDestinations: remove it \
     from one of the two'",
).field_path(".exceptDestinations"))]
#[serde(rename_all = "camelCase")]
pub struct Outbound {
    /// The port on which the proxy accepts these connections. It learns the original destination
    /// from the socket option `SO_ORIGINAL_DST`.
    #[schemars(schema_with = "schema::port")]
    pub port: u16,

    /// The destinations whose connections are redirected: IP addresses or CIDR ranges, of both
    /// families. Unset: all except `exceptDestinations`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::destinations")]
    pub destinations: Vec<String>,

    /// The TCP ports at these destinations. Unset: all except `exceptPorts`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::ports")]
    pub ports: Vec<u16>,

    /// Destinations whose connections are not redirected: IP addresses or CIDR ranges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::destinations")]
    pub except_destinations: Vec<String>,

    /// TCP ports whose connections are not redirected, whatever their destination.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::ports")]
    pub except_ports: Vec<u16>,
}

/// How the rules recognise the proxy. A connection that any of the fields recognises is the
/// proxy's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(validation = Rule::new(
    "has(self.uids) || has(self.gids) || has(self.marks) || has(self.cgroup)",
).message("recognises nobody: give the proxy's uids, gids, marks or cgroup, or remove exempt"))]
#[serde(rename_all = "camelCase")]
pub struct Exempt {
    /// The user IDs that the proxy runs as. No other container of the pod may run as one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::ids")]
    pub uids: Vec<u32>,

    /// The group IDs that the proxy runs as. Useful for a proxy that needs user 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::ids")]
    pub gids: Vec<u32>,

    /// The marks that the proxy sets on its sockets with `SO_MARK`, for which it needs `NET_ADMIN`
    /// or `NET_RAW`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::marks")]
    pub marks: Vec<u32>,

    /// The control group of the proxy's processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<Cgroup>,
}

/// The control group of the proxy's processes, in one of the two versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(validation = rules::rule(
    "has(self.path) != has(self.classId)",
    "has(self.path) \
     ? 'path \"' + self.path + '\" and a classId are given: remove one of them' \
     : 'neither path nor classId is given: give the cgroup v2 path or the net_cls class of the proxy'",
))]
#[serde(rename_all = "camelCase")]
pub struct Cgroup {
    /// The cgroup v2 path, relative to the root that the init container sees in `/sys/fs/cgroup`.
    /// It must exist before the init container runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::path")]
    pub path: Option<String>,

    /// The class ID of the net_cls controller of cgroup v1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::class")]
    pub class_id: Option<u32>,
}

/// When the init container runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum InitOrder {
    /// Before all other init containers.
    #[default]
    First,
    /// After all other init containers.
    Last,
}
