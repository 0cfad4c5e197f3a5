//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use isp_plan::Key;

const EXAMPLES: &str = "\
Examples:
  kubectl isp status                    how all objects stand
  kubectl isp status web --watch        one object, again whenever something changes
  kubectl isp plan -f web.yaml          what applying the file would change, step by step
  kubectl isp explain-node work-1       what a node may see, and why
  kubectl isp doctor                    what keeps addresses from arriving, and what to do about it

Exit codes:
  0  fine
  1  an error: the cluster cannot be read, or something asked for is not there
  2  status: an object shown is not Ready; plan: an object of the file would not become Ready;
     doctor: something is wrong";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  kubectl isp doctor
  kubectl isp doctor --service istio-system/istio-ingressgateway
  kubectl isp doctor -o json | jq -r '.[].code'

  kubectl get isp,isn,services,endpointslices,nodes,namespaces,pods,daemonsets,deployments,networkpolicies,ingresses -A -o yaml > dump/core.yaml
  kubectl get configmap -n kube-system kube-proxy -o yaml > dump/kube-proxy.yaml
  kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations -o yaml > dump/webhooks.yaml
  kubectl get authorizationpolicies,envoyfilters,virtualservices,gateways.networking.istio.io -A -o yaml > dump/istio.yaml
  kubectl get configmaps -A -l istio.io/rev -o yaml > dump/mesh.yaml
  kubectl isp doctor --from-dir dump

Exit code 0: nothing is wrong (notes do not count), 2: errors or warnings were found, 1: the cluster or the dump cannot be read.";

const PLAN_EXAMPLES: &str = "\
Examples:
  kubectl isp plan -f web.yaml
  kubectl get isp web -o yaml | sed 's/ClusterOnly/Hidden/' | kubectl isp plan -f -

The plan is the operator's own, carried out on a copy of the cluster in memory: every agent starts, every write is accepted,
nobody else changes anything. Nothing is written to the cluster. Exit code 2: an object of the file would not become Ready.";

/// How IngressSourcePreserves stand, what they would change, and what a node sees. It changes nothing.
#[derive(Debug, Parser)]
#[command(name = "kubectl-isp", bin_name = "kubectl isp", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Cli {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Which cluster.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PlaceArgs {
    /// The kubeconfig. [default: as kubectl: KUBECONFIG, else ~/.kube/config]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig. [default: its current one]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// How objects stand: what is done, what they wait for, what is wrong and what to do.
    Status(StatusArgs),
    /// What applying a file would change, step by step. Nothing is written.
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(PlanArgs),
    /// What a node may see of the preserved Services, why, and what its agent has acknowledged.
    ExplainNode(ExplainNodeArgs),
    /// Looks for what keeps the client's address from arriving, and says what to do. Nothing is written.
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// A script for the completion of `kubectl-isp`.
    Completion {
        /// For which shell.
        shell: Shell,
    },
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// An IngressSourcePreserve. [default: all]
    pub(crate) name: Option<String>,
    /// json and yaml: the objects as the API has them; wide: everything that is left out otherwise.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
    /// Show it again whenever something changes, until Ctrl-C.
    #[arg(short, long)]
    pub(crate) watch: bool,
}

/// What is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Json,
    Yaml,
    Wide,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// IngressSourcePreserves as YAML or JSON, one or several documents; - is the standard input.
    #[arg(short, long = "filename", value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The image of the agents. [default: the one that the installed operator has]
    #[arg(long, value_name = "IMAGE")]
    pub(crate) agent_image: Option<String>,
    /// The namespace of the operator and of the webhook.
    #[arg(short, long, default_value = "sourcepreserve-system")]
    pub(crate) namespace: String,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainNodeArgs {
    /// The node.
    pub(crate) node: String,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Only what bears on this Service, whether it is preserved or not.
    #[arg(short, long, value_name = "NAMESPACE/NAME", value_parser = key)]
    pub(crate) service: Option<Key>,
    /// json and yaml: a list of findings, each with code, severity, subject, line, reason and remedy.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<ListFormat>,
    /// Look at files that `kubectl get -o yaml` has written, in this directory and below, and at no cluster.
    #[arg(long, value_name = "DUMP")]
    pub(crate) from_dir: Option<PathBuf>,
}

/// How a list is printed.
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
        _ => Err("a Service is named by its namespace and its name: web/frontend".to_owned()),
    }
}
