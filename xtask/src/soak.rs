//! `cargo xtask soak <name>`: a long campaign at full length. The test layers run the same test in
//! a short form; an environment variable sets the length.

use std::fmt;
use std::path::PathBuf;

use clap::ValueEnum;
use thiserror::Error;

use crate::lab;
use crate::process::{self, ProcessError};
use crate::release::before::{self, BeforeError};
use crate::release::{self, Home, Registry, ReleaseError};
use crate::workspace::Workspace;

/// The campaigns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Campaign {
    /// Start and stop twenty labs in a row; each must leave nothing behind
    LabCycles,
    /// Change a view 200 times while 2,000 Services churn
    FilterViews,
    /// Kill agent, kube-proxy and API server 200 times while 2,000 Services churn
    FilterKills,
    /// Flood an agent, with its container's memory limit, with 200 unauthenticated connections for
    /// ten minutes
    AgentFlood,
    /// Restart and kill agents of mode Beside, flip labels 200 times, change endpoints 5,000 times,
    /// stop the API server and flush rulesets, under traffic
    BesideStorm,
    /// Kill an agent of mode Beside 1,000 times, and stop the API server, while Services and
    /// endpoints change; the table must equal a fresh one
    BesideKills,
    /// Kill the operator after each single write while an object is applied and deleted, one write
    /// per run
    OperatorKills,
    /// Run the operator with 1,000 objects, 5,000 nodes and 5,000 Services
    OperatorScale,
    /// Run the operator with 10,000 pods, all of which it watches
    OperatorPods,
    /// Install, upgrade and uninstall with the oldest supported API server, too, and try to misuse
    /// the webhook's account there
    ApiServers,
    /// Check every write of 20,000 generated cluster histories against the interlocks
    PlanHistories,
    /// Fuzz the planner with a million clusters that have hostile annotations, labels, statuses and
    /// objects
    PlanFuzz,
    /// Compare the trace of packets through 100,000 generated sets of rules with an oracle, and
    /// 5,000 histories of changes with a fresh compile
    DataplaneOracle,
    /// Compare the agent of mode Beside with kube-proxy and with the trace: real connections to 300
    /// generated Services
    BesideSameAsKubeProxy,
    /// Rotate certificates and CAs every few seconds for two minutes, while pods are created in a
    /// mesh
    WebhookRotation,
    /// Send more than a million malformed or nearly valid admission reviews
    WebhookReviews,
    /// Run all attacks of a hostile cluster, in nftables and in iptables mode, under traffic
    Hostile,
    /// Make this release and the one before it, and use both from their files alone: the tutorial,
    /// upgrades and downgrades under traffic, by kubectl and by Helm
    Release,
    /// Interrupt `kubectl isp probe` at twenty moments; each must leave nothing behind
    ProbeBreaks,
    /// Compare `kubectl isp trace` with real connections: 500 generated cases, without an object
    /// and in each mode, with kube-proxy in nftables and in iptables mode
    Trace,
    /// Interrupt the demo at forty moments, half of them with Istio; each must leave nothing behind
    DemoBreaks,
    /// Run the demo without Istio, with IPv4, IPv6 and both, in nftables and iptables mode
    DemoFamilies,
    /// Run the demo in mode Beside, with Istio and with two IP families, in nftables and iptables
    /// mode
    DemoBeside,
}

/// Crates whose unit tests have campaigns.
const PLAN: &str = "isp-plan";
const WEBHOOK: &str = "isp-webhook";

impl Campaign {
    /// The integration tests, or the crate of the unit test; the name filter that selects the test;
    /// and the variable with its full length.
    fn test(self) -> (&'static str, &'static str, (&'static str, &'static str)) {
        match self {
            Self::LabCycles => ("lab_lifecycle", "up_and_down_again_and_again", ("ISP_SOAK_CYCLES", "20")),
            Self::FilterViews => ("lab_filter", "a_view_that_changes_under_churn", ("ISP_SOAK_VIEWS", "200")),
            Self::FilterKills => ("lab_filter", "programs_killed_under_churn", ("ISP_SOAK_KILLS", "200")),
            Self::AgentFlood => ("api_flood", "two_hundred_connections", ("ISP_SOAK_FLOOD", "600")),
            Self::BesideStorm => ("lab_beside_storm", "no_request_fails", ("ISP_SOAK_STORM", "1")),
            Self::BesideKills => {
                ("lab_beside_kills", "whatever_is_killed", ("ISP_SOAK_BESIDE_KILLS", "1000"))
            }
            // More than there are writes.
            Self::OperatorKills => {
                ("lab_operator", "killed_after_any_write", ("ISP_SOAK_OPERATOR_KILLS", "1000"))
            }
            Self::OperatorScale => ("api_scale", "many_objects", ("ISP_SCALE", "1000,5000,5000,60")),
            Self::OperatorPods => ("api_scale", "many_pods", ("ISP_SCALE_PODS", "10000")),
            Self::ApiServers => ("api_chart api_rights", "an_api_server", ("ISP_SOAK_API_SERVERS", "all")),
            Self::PlanHistories => (PLAN, "every_history", ("ISP_PLAN_CASES", "20000")),
            Self::PlanFuzz => (PLAN, "whatever_others", ("ISP_FUZZ_CASES", "1000000")),
            Self::DataplaneOracle => ("same_as_oracle", "", ("ISP_ORACLE_CASES", "100000")),
            Self::BesideSameAsKubeProxy => ("lab_same_as_kube_proxy", "", ("ISP_SAME_SERVICES", "300")),
            Self::WebhookRotation => {
                ("lab_mesh", "the_address_arrives_in_the_mesh", ("ISP_SOAK_ROTATION", "120"))
            }
            Self::Hostile => ("lab_hostile", "does_not_hurt_its_users", ("ISP_SOAK_HOSTILE", "1")),
            // Two ways to install, in two modes.
            Self::Release => ("lab_upgrade lab_docs", "", ("ISP_SOAK_UPGRADES", "4")),
            Self::ProbeBreaks => ("lab_probe", "interrupted_at_any_moment", ("ISP_SOAK_PROBE", "20")),
            Self::Trace => ("lab_trace", "", ("ISP_TRACE_CASES", "500")),
            Self::DemoBreaks => ("lab_demo", "broken_off_at_any_moment", ("ISP_SOAK_DEMO", "20")),
            Self::DemoFamilies => ("lab_demo", "with_ipv6_every_cell", ("ISP_SOAK_FAMILIES", "all")),
            Self::DemoBeside => ("lab_demo lab_demo_mesh", "beside", ("ISP_SOAK_BESIDE", "all")),
            // The number of reviews for each of three kinds; one kind is sent to both paths.
            Self::WebhookReviews => (WEBHOOK, "anything", ("ISP_REVIEW_CASES", "300000")),
        }
    }
}

impl fmt::Display for Campaign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LabCycles => "lab-cycles",
            Self::FilterViews => "filter-views",
            Self::FilterKills => "filter-kills",
            Self::AgentFlood => "agent-flood",
            Self::BesideStorm => "beside-storm",
            Self::BesideKills => "beside-kills",
            Self::OperatorKills => "operator-kills",
            Self::OperatorScale => "operator-scale",
            Self::OperatorPods => "operator-pods",
            Self::ApiServers => "api-servers",
            Self::PlanHistories => "plan-histories",
            Self::PlanFuzz => "plan-fuzz",
            Self::DataplaneOracle => "dataplane-oracle",
            Self::BesideSameAsKubeProxy => "beside-same-as-kube-proxy",
            Self::WebhookRotation => "webhook-rotation",
            Self::WebhookReviews => "webhook-reviews",
            Self::Hostile => "hostile",
            Self::Release => "release",
            Self::ProbeBreaks => "probe-breaks",
            Self::Trace => "trace",
            Self::DemoBreaks => "demo-breaks",
            Self::DemoFamilies => "demo-families",
            Self::DemoBeside => "demo-beside",
        })
    }
}

/// Why a campaign failed.
#[derive(Debug, Error)]
pub(crate) enum SoakError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Release(#[from] ReleaseError),
    #[error(transparent)]
    Before(#[from] BeforeError),
}

/// Runs a campaign, which prints its figures.
pub(crate) fn run(workspace: &Workspace, campaign: Campaign) -> Result<(), SoakError> {
    lab::build(workspace)?;
    let (test, filter, (variable, length)) = campaign.test();
    println!("soak: {campaign}");
    let mut cargo = process::cargo(&workspace.root);
    cargo.arg("test");
    match test {
        package @ (PLAN | WEBHOOK) => cargo.args(["--release", "--package", package, "--lib"]),
        // Tests of memory and time use the release profile, as shipped.
        "api_flood" | "api_scale" | "same_as_oracle" => {
            cargo.args(["--release", "--workspace", "--test", test])
        }
        tests => cargo.arg("--workspace").args(tests.split(' ').flat_map(|test| ["--test", test])),
    };
    cargo.args(["--", filter, "--test-threads=1", "--nocapture"]);
    if campaign == Campaign::Release {
        cargo.envs(releases(workspace)?);
    }
    Ok(process::run(cargo.env(variable, length))?)
}

/// Makes this release and the one before it. Returns the variables with their directories.
fn releases(workspace: &Workspace) -> Result<[(&'static str, PathBuf); 2], SoakError> {
    let before = before::files(workspace)?;
    let this = workspace.target().join("soak/release");
    release::run(workspace, Registry::default(), Home::default(), &this)?;
    Ok([("ISP_SOAK_RELEASE", this), ("ISP_SOAK_RELEASE_BEFORE", before)])
}
