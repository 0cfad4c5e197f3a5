//! The command line. `help` has the longer texts.

mod help;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use isp_plan::Key;
use isp_pod_rules::packet::Packet;

use crate::probe::NodeChoice;
use crate::report::parse_listen;
use crate::trace::{Destination, SourceArg};

/// Where the project is installed by default.
const SYSTEM_NAMESPACE: &str = "sourcepreserve-system";

/// Where helper pods run. The project's own namespace admits no pod with capabilities.
const HELPER_NAMESPACE: &str = "kube-system";

/// Checks clusters, shows the state of IngressSourcePreserves, plans changes, explains nodes and
/// pods, finds faults, traces packets.
#[derive(Debug, Parser)]
#[command(name = "kubectl-isp", bin_name = "kubectl isp", version, arg_required_else_help = true, after_help = help::EXAMPLES)]
pub struct Cli {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The cluster.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PlaceArgs {
    /// Path of the kubeconfig. [default: KUBECONFIG, else ~/.kube/config]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. [default: the current context]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check which exposed Services lose the client's source IP, which policies misjudge, and which
    /// mode fits; propose an object. Nothing needs to be installed.
    #[command(after_help = help::CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Show the state of objects: conditions, what the operator waits for, problems and remedies.
    Status(StatusArgs),
    /// Show the changes that applying a file would cause, step by step. Nothing is written.
    #[command(after_help = help::PLAN_EXAMPLES)]
    Plan(PlanArgs),
    /// Explain which preserved Services a node may see, why, and what its agent has acknowledged.
    #[command(after_help = help::EXPLAIN_NODE_HELP)]
    ExplainNode(ExplainNodeArgs),
    /// Find faults that lose the client's source IP, with remedies. Nothing is written without
    /// --rules.
    #[command(after_help = help::DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// Write a page that shows the paths to Services and whose address arrives, before and after.
    /// Nothing is written to the cluster.
    #[command(after_help = help::REPORT_EXAMPLES)]
    Report(ReportArgs),
    /// Explain the redirect rules of a running pod: which mode is in force, and which ports go
    /// where.
    #[command(after_help = help::RULES_EXAMPLES)]
    Rules(RulesArgs),
    /// Connect to every address of a Service from pods, nodes and this machine, and show the source
    /// IPs that arrive.
    #[command(after_help = help::PROBE_EXAMPLES)]
    Probe(ProbeArgs),
    /// Follow a packet through the cluster: which node changes which address, and why.
    #[command(after_help = help::TRACE_EXAMPLES)]
    Trace(TraceArgs),
    /// Print a completion script for `kubectl-isp`.
    Completion {
        /// The shell.
        shell: Shell,
    },
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Name of an IngressSourcePreserve. [default: all]
    pub(crate) name: Option<String>,
    /// json, yaml: the objects as the API server has them; wide: all Services, nodes, conditions.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
    /// Print the report again on every change, until Ctrl-C.
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// Namespace of the operator's Lease.
    #[arg(long, value_name = "NAMESPACE", default_value = SYSTEM_NAMESPACE)]
    pub(crate) operator_namespace: String,
}

/// The output format of `status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Json,
    Yaml,
    Wide,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// File with IngressSourcePreserves as YAML or JSON, one or more documents; - is stdin.
    #[arg(short, long = "filename", value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Image of the agents. [default: the image that the installed operator uses]
    #[arg(long, value_name = "IMAGE")]
    pub(crate) agent_image: Option<String>,
    /// Namespace of the operator and of the webhook.
    #[arg(short, long, default_value = SYSTEM_NAMESPACE)]
    pub(crate) namespace: String,
    /// Plan on a dump instead of a cluster: a directory with files of `kubectl get -o yaml`.
    #[arg(long, value_name = "DUMP")]
    pub(crate) from_dir: Option<PathBuf>,
    /// Exit with 3 if applying the file would change something, and all of it would become Ready.
    #[arg(long)]
    pub(crate) exit_code: bool,
    /// json and yaml: the steps with the operator's own action names, for scripts.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<ListFormat>,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainNodeArgs {
    /// Name of the node.
    pub(crate) node: String,
    /// json, yaml: the explanation, for scripts.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<ListFormat>,
}

/// The examined part of a cluster, of `check` and `doctor`.
#[derive(Debug, Args)]
pub(crate) struct ExamineArgs {
    /// Check only what affects this Service, whether an object preserves it or not.
    #[arg(short, long, value_name = "NAMESPACE/NAME", value_parser = key)]
    pub(crate) service: Option<Key>,
    /// json, yaml: what failed and what passed, for scripts; sarif: what failed, for code scanners.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<FindingFormat>,
    /// Check a dump instead of a cluster: a directory with files of `kubectl get -o yaml`.
    #[arg(long, value_name = "DUMP")]
    pub(crate) from_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) examine: ExamineArgs,
    /// Write the proposed object to this file. An existing file is not replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
    /// Replace the file of --write.
    #[arg(long, requires = "write")]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) examine: ExamineArgs,
    /// Compare sidecars with the packet rules of their pods as well. Runs helper pods, see `rules`.
    #[arg(long, conflicts_with = "from_dir")]
    pub(crate) rules: bool,
    #[command(flatten)]
    pub(crate) helper: HelperArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ReportCommand>,
    /// Compare with the state after this file is applied, as `plan` foresees it; - is stdin.
    #[arg(short, long = "filename", value_name = "FILE", global = true, conflicts_with = "from_dir")]
    pub(crate) file: Option<PathBuf>,
    /// Show only this Service; may be given several times. [default: all exposed Services]
    #[arg(short, long, value_name = "NAMESPACE/NAME", value_parser = key, global = true)]
    pub(crate) service: Vec<Key>,
    /// Read a dump instead of a cluster: a directory with files of `kubectl get -o yaml`.
    #[arg(long, value_name = "DUMP", global = true)]
    pub(crate) from_dir: Option<PathBuf>,
    /// Write the page to this file; - is stdout.
    #[arg(short, long, value_name = "FILE", default_value = "isp-report.html")]
    pub(crate) output: PathBuf,
    /// Namespace of the operator, for -f.
    #[arg(short, long, default_value = SYSTEM_NAMESPACE, global = true)]
    pub(crate) namespace: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReportCommand {
    /// Show the page on a local server, and follow the cluster until Ctrl-C.
    Serve(ServeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address and port to listen on.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8090", value_parser = parse_listen)]
    pub(crate) listen: SocketAddr,
    /// Allow an address that other machines reach. Everybody who reaches it can read the page.
    #[arg(long)]
    pub(crate) insecure_listen: bool,
    /// Seconds between two readings of the cluster.
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub(crate) interval: u32,
}

#[derive(Debug, Args)]
pub(crate) struct RulesArgs {
    /// The pod.
    #[arg(value_name = "NAMESPACE/POD", value_parser = key)]
    pub(crate) pod: Key,
    /// Trace one packet through the rules, such as 'tcp 203.0.113.5 -> :8080'.
    #[arg(long, value_name = "PACKET")]
    pub(crate) packet: Option<Packet>,
    /// Print all rules and the routing as well, in the words of `nft` and `ip`.
    #[arg(long)]
    pub(crate) raw: bool,
    /// json, yaml: the explanation, for scripts.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<ListFormat>,
    #[command(flatten)]
    pub(crate) helper: HelperArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// Client: pod/NAMESPACE/NAME, node/NAME, or the address of a client outside the cluster.
    #[arg(long, value_name = "SOURCE")]
    pub(crate) from: SourceArg,
    /// Destination: svc/NAMESPACE/NAME, svc/NAMESPACE/NAME:PORT, node/NAME:PORT, or ADDRESS:PORT.
    #[arg(long, value_name = "DESTINATION")]
    pub(crate) to: Destination,
    /// Protocol.
    #[arg(long, value_enum, default_value_t = ProtocolArg::Tcp)]
    pub(crate) protocol: ProtocolArg,
    /// Node at which traffic from outside arrives. [default: each that the address may lead to]
    #[arg(long, value_name = "NODE")]
    pub(crate) via: Option<String>,
    /// Trace through a dump instead of a cluster: a directory with files of `kubectl get -o yaml`.
    #[arg(long, value_name = "DUMP")]
    pub(crate) from_dir: Option<PathBuf>,
    /// json, yaml: every way with its hops, for scripts.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<ListFormat>,
}

/// A protocol of Services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProtocolArg {
    Tcp,
    Udp,
    Sctp,
}

/// The helper pod that reads rules.
#[derive(Clone, Debug, Args)]
pub(crate) struct HelperArgs {
    /// Image of the helper pod. [default: the image pod-redirect that the installed webhook uses]
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Namespace of the helper pod. It must admit host paths and capabilities.
    #[arg(long, value_name = "NAMESPACE", default_value = HELPER_NAMESPACE)]
    pub(crate) helper_namespace: String,
    /// Namespace of the webhook.
    #[arg(long, value_name = "NAMESPACE", default_value = SYSTEM_NAMESPACE)]
    pub(crate) operator_namespace: String,
}

#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// The Service. [default: the only one that an IngressSourcePreserve preserves]
    #[arg(short, long, value_name = "NAMESPACE/NAME", value_parser = key)]
    pub(crate) service: Option<Key>,
    /// What is connected to.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) target: ProbeTarget,
    /// Nodes that run clients: names with commas between them, or a number. [default: up to three
    /// nodes with endpoints and up to two others]
    #[arg(long, value_name = "NODES")]
    pub(crate) nodes: Option<NodeChoice>,
    /// Connect from this machine as well. [default: if an address is reachable in a second]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) from_here: Option<bool>,
    /// Do not ask before pods are created.
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// json, yaml: the table, for scripts.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<ListFormat>,
    /// Save the table in a file, for a later --compare.
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Show what has changed since a table was saved.
    #[arg(long, value_name = "FILE")]
    pub(crate) compare: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) helper: ProbeHelperArgs,
}

/// The target of `probe`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProbeTarget {
    /// Our echo program, behind a Service of the same shape.
    #[default]
    Canary,
    /// The Service itself, by the access log of its pods.
    Own,
}

/// The pods of `probe`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ProbeHelperArgs {
    /// Image of the pods. [default: the image probe next to that of the installed operator]
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Namespace of the clients. It must admit hostNetwork.
    #[arg(long, value_name = "NAMESPACE", default_value = HELPER_NAMESPACE)]
    pub(crate) helper_namespace: String,
    /// Namespace of the operator.
    #[arg(long, value_name = "NAMESPACE", default_value = SYSTEM_NAMESPACE)]
    pub(crate) operator_namespace: String,
}

/// The output format for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    Json,
    Yaml,
}

/// The output format of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FindingFormat {
    Json,
    Yaml,
    Sarif,
}

fn key(text: &str) -> Result<Key, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(Key::new(namespace, name))
        }
        _ => Err("expected NAMESPACE/NAME, for example web/frontend".to_owned()),
    }
}
