//! The values that a page shows. They hold text for people: whoever fills them has decided what is
//! right or wrong.

use serde::Serialize;

/// Everything that a page shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The heading.
    pub title: String,
    /// When the cluster was read, in RFC 3339.
    pub time: String,
    /// Where the facts come from: a context of a kubeconfig, or a dump.
    pub origin: String,
    /// The states that are compared. The first is the present one.
    pub stages: Vec<Stage>,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The Services.
    pub services: Vec<Service>,
    /// The paths to the Services.
    pub paths: Vec<Path>,
    /// The policies that compare addresses.
    pub policies: Vec<Policy>,
    /// Faults and notes, the gravest first.
    pub findings: Vec<Finding>,
    /// The Events, the oldest first.
    pub timeline: Vec<Event>,
    /// What the report cannot tell, and why.
    pub gaps: Vec<String>,
}

/// A state of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
    /// A short name: `Now`, `With isp.yaml`.
    pub label: String,
    /// How it is known.
    pub basis: String,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Its name.
    pub name: String,
    /// The pool of its agent, or another name for nodes of its kind.
    pub pool: String,
    /// Its role.
    pub role: Role,
    /// Whether it is ready.
    pub ready: bool,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// What is worth knowing about it, such as the state of its agent.
    pub remark: String,
}

/// The role of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It takes external traffic.
    Ingress,
    /// It has an agent and does not take external traffic.
    NonIngress,
    /// It has no agent: the cluster's own proxy serves it.
    Agentless,
}

/// A Service and the ways into it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Service {
    /// Namespace and name, separated by a slash.
    pub name: String,
    /// Its type.
    pub kind: String,
    /// `externalTrafficPolicy` in each stage.
    pub policies: Vec<String>,
    /// The object that preserves it, in each stage.
    pub objects: Vec<Option<String>>,
    /// Its addresses.
    pub ways: Vec<Way>,
}

/// An address of a Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Way {
    /// The kind of address.
    pub kind: WayKind,
    /// Address and port; for a NodePort the port.
    pub address: String,
}

/// The kind of an address of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WayKind {
    /// The ClusterIP.
    ClusterIp,
    /// An address of a load balancer, or an external IP.
    External,
    /// A port of nodes.
    NodePort,
}

/// A path from a source to an address of a Service. It stands for all nodes that it names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Path {
    /// The Service, by its name.
    pub service: String,
    /// The source.
    pub from: Source,
    /// The destination.
    pub to: Destination,
    /// How the path runs in each stage.
    pub journeys: Vec<Journey>,
}

/// Where connections come from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// The kind.
    pub kind: SourceKind,
    /// The source's own address, or that of the first node's source.
    pub address: String,
    /// The nodes; none if the source is outside.
    pub nodes: Vec<String>,
}

/// The kind of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// A client outside the cluster.
    Outside,
    /// A pod.
    Pod,
    /// A process on the host network of a node.
    Host,
}

/// Where connections go to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Destination {
    /// The kind.
    pub kind: WayKind,
    /// Address and port.
    pub address: String,
    /// The nodes that take the connection: of a NodePort, or those at which traffic from outside
    /// arrives.
    pub nodes: Vec<String>,
}

/// A path in one stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Journey {
    /// How it ends.
    pub outcome: Outcome,
    /// The source address that arrives, if a connection arrives.
    pub arrives: Option<String>,
    /// The result in one sentence.
    pub line: String,
    /// The hops, in order. Those of the first node, if the path stands for several.
    pub hops: Vec<Hop>,
}

/// How a path ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The client's own address arrives.
    Preserved,
    /// Another address arrives.
    Lost,
    /// Nothing arrives, and nothing should.
    Dropped,
    /// Nothing arrives, although it should.
    Unreachable,
    /// The facts do not suffice.
    Unclear,
}

impl Outcome {
    /// All of them, in the order of the legend.
    pub const ALL: [Self; 5] = [Self::Preserved, Self::Lost, Self::Dropped, Self::Unreachable, Self::Unclear];

    /// The name in the page's style sheet.
    pub fn key(self) -> &'static str {
        match self {
            Self::Preserved => "preserved",
            Self::Lost => "lost",
            Self::Dropped => "dropped",
            Self::Unreachable => "unreachable",
            Self::Unclear => "unclear",
        }
    }

    /// The name for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Preserved => "Source IP preserved",
            Self::Lost => "Source IP lost",
            Self::Dropped => "Dropped as intended",
            Self::Unreachable => "Unreachable",
            Self::Unclear => "Unclear",
        }
    }

    /// A mark that tells outcomes apart without colours.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Preserved => "\u{2713}",
            Self::Lost => "\u{2717}",
            Self::Dropped => "\u{2298}",
            Self::Unreachable => "!",
            Self::Unclear => "?",
        }
    }
}

/// Something that acts on a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hop {
    /// Where: `outside`, `node work-1`, `pod web/frontend-1`.
    pub place: String,
    /// Whose rules act.
    pub actor: String,
    /// What happens, and why.
    pub reason: String,
    /// The addresses before it.
    pub before: Flow,
    /// The addresses after it.
    pub after: Flow,
    /// The rules that applied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// Whether the usual behaviour is assumed, because the API does not show the actual one.
    pub assumed: bool,
}

/// Source and destination of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// The source address.
    pub source: String,
    /// Address and port of the destination.
    pub destination: String,
}

/// A policy that compares addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// Its kind.
    pub kind: String,
    /// Namespace and name.
    pub name: String,
    /// What it does with the addresses that it lists, in a few words.
    pub rule: String,
    /// How it judges in each stage.
    pub judgements: Vec<Judgement>,
}

/// How a policy judges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The reason.
    pub reason: String,
}

/// Whether a policy judges the client that it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It judges the client.
    Right,
    /// It admits clients that it should reject.
    FailsOpen,
    /// It rejects clients that it should admit.
    FailsClosed,
    /// The facts do not suffice.
    Unknown,
}

/// A finding of `kubectl isp doctor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The stable code.
    pub code: String,
    /// How grave it is.
    pub severity: Severity,
    /// What it is about.
    pub subject: String,
    /// The fact.
    pub line: String,
    /// Why it matters.
    pub reason: String,
    /// What to do, one step or command each.
    pub remedy: Vec<String>,
}

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The source IP is lost, or clients get no answer.
    Error,
    /// It works, but not for every client or not permanently.
    Warning,
    /// Worth knowing, but no fault.
    Note,
}

/// An Event of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// When it was seen last, in RFC 3339.
    pub time: String,
    /// Whether it is a warning.
    pub warning: bool,
    /// Kind and name of its object.
    pub object: String,
    /// The reason, one word.
    pub reason: String,
    /// The message.
    pub message: String,
    /// How often it was seen.
    pub count: u32,
}
