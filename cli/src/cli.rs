//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use isp_plan::Key;

/// Where the project is installed by default.
const SYSTEM_NAMESPACE: &str = "sourcepreserve-system";

const EXAMPLES: &str = "\
Examples:
  kubectl isp status                    state of all objects
  kubectl isp status web --watch        state of one object, printed again on every change
  kubectl isp plan -f web.yaml          changes that applying the file would cause, step by step
  kubectl isp explain-node work-1       Services that a node may see, and the reason
  kubectl isp doctor                    faults that lose the client's source IP, and their remedies

Exit codes:
  0  no problem
  1  an error: the cluster cannot be read, or the named object, node or Service does not exist
  2  status: an object shown is not Ready, or no operator runs
     plan: an object of the file would not become Ready
     explain-node: the node is not as it should be
     doctor: there are errors or warnings

Environment:
  KUBECONFIG             the kubeconfig, as for kubectl
  LC_ALL, LC_CTYPE, LANG conditions are shown as \u{2714} and \u{2716} in a UTF-8 locale, else as ok and no
  COLUMNS                the width for wrapped lines, instead of the terminal's own
  NO_COLOR               no colours";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  kubectl isp doctor
  kubectl isp doctor --service istio-system/istio-ingressgateway
  kubectl isp doctor -o json | jq -r '.findings[].code'

  kubectl get isp,isn,services,endpointslices,nodes,namespaces,pods,daemonsets,deployments,networkpolicies,ingresses -A -o yaml > dump/core.yaml
  kubectl get configmap -n kube-system kube-proxy -o yaml > dump/kube-proxy.yaml
  kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations -o yaml > dump/webhooks.yaml
  kubectl get authorizationpolicies,envoyfilters,virtualservices,gateways.networking.istio.io -A -o yaml > dump/istio.yaml
  kubectl get configmaps -A -l istio.io/rev -o yaml > dump/mesh.yaml
  kubectl isp doctor --from-dir dump

Exit code 0: no errors and no warnings, 2: errors or warnings, 1: the cluster or the dump cannot be read.";

const PLAN_EXAMPLES: &str = "\
Examples:
  kubectl isp plan -f web.yaml
  kubectl isp plan -f web.yaml -o json | jq -r '.steps[].actions[] | .action + \" \" + .object'
  kubectl get isp web -o yaml | sed 's/ClusterOnly/Hidden/' | kubectl isp plan -f -

The plan comes from the operator's own code, which runs on a copy of the cluster in memory. There every agent starts, every
write is accepted, and nobody else changes anything. Nothing is written to the cluster. Exit code 2: an object of the file would
not become Ready.";

const EXPLAIN_NODE_HELP: &str = "\
Exit code 0: the node is as it should be, 2: it is not ready, its agent is missing, failed or behind, 1: there is no such node.";

/// Shows the state of IngressSourcePreserves, plans changes, explains nodes, finds faults.
#[derive(Debug, Parser)]
#[command(name = "kubectl-isp", bin_name = "kubectl isp", version, arg_required_else_help = true, after_help = EXAMPLES)]
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
    /// Show the state of objects: conditions, what the operator waits for, problems and remedies.
    Status(StatusArgs),
    /// Show the changes that applying a file would cause, step by step. Nothing is written.
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(PlanArgs),
    /// Explain which preserved Services a node may see, why, and what its agent has acknowledged.
    #[command(after_help = EXPLAIN_NODE_HELP)]
    ExplainNode(ExplainNodeArgs),
    /// Find faults that lose the client's source IP, with remedies. Nothing is written.
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
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
    /// json and yaml: the steps with the operator's own action names, for scripts.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<ListFormat>,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainNodeArgs {
    /// Name of the node.
    pub(crate) node: String,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Check only what affects this Service, whether an object preserves it or not.
    #[arg(short, long, value_name = "NAMESPACE/NAME", value_parser = key)]
    pub(crate) service: Option<Key>,
    /// json, yaml: the findings and the checks that passed, for scripts.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<ListFormat>,
    /// Check a dump instead of a cluster: a directory with files of `kubectl get -o yaml`.
    #[arg(long, value_name = "DUMP")]
    pub(crate) from_dir: Option<PathBuf>,
}

/// The output format for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    Json,
    Yaml,
}

fn key(text: &str) -> Result<Key, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(Key::new(namespace, name))
        }
        _ => Err("expected NAMESPACE/NAME, for example web/frontend".to_owned()),
    }
}
