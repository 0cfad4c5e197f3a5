//! `cargo xtask soak <name>`: a long campaign at full length. The test layers run the same test in
//! a short form; an environment variable sets the length.

use std::fmt;

use clap::ValueEnum;

use crate::lab;
use crate::process::{self, ProcessError};
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
    /// Kill the operator after each single write while an object is applied and deleted, one write
    /// per run
    OperatorKills,
    /// Run the operator with 1,000 objects, 5,000 nodes and 5,000 Services
    OperatorScale,
    /// Check every write of 20,000 generated cluster histories against the interlocks
    PlanHistories,
    /// Fuzz the planner with a million clusters that have hostile annotations, labels, statuses and
    /// objects
    PlanFuzz,
    /// Rotate certificates and CAs every few seconds for two minutes, while pods are created in a
    /// mesh
    WebhookRotation,
    /// Send more than a million malformed or nearly valid admission reviews
    WebhookReviews,
    /// Run all attacks of a hostile cluster, in nftables and in iptables mode, under traffic
    Hostile,
    /// Interrupt the demo at forty moments, half of them with Istio; each must leave nothing behind
    DemoBreaks,
    /// Run the demo with dual-stack and with IPv6 only, in nftables and iptables mode
    DemoFamilies,
}

/// Crates whose unit tests have campaigns.
const PLAN: &str = "isp-plan";
const WEBHOOK: &str = "isp-webhook";

impl Campaign {
    /// The integration test, or the crate of the unit test; the name filter that selects the test;
    /// and the variable with its full length.
    fn test(self) -> (&'static str, &'static str, (&'static str, &'static str)) {
        match self {
            Self::LabCycles => ("lab_lifecycle", "up_and_down_again_and_again", ("ISP_SOAK_CYCLES", "20")),
            Self::FilterViews => ("lab_filter", "a_view_that_changes_under_churn", ("ISP_SOAK_VIEWS", "200")),
            Self::FilterKills => ("lab_filter", "programs_killed_under_churn", ("ISP_SOAK_KILLS", "200")),
            Self::AgentFlood => ("api_flood", "two_hundred_connections", ("ISP_SOAK_FLOOD", "600")),
            // More than there are writes.
            Self::OperatorKills => {
                ("lab_operator", "killed_after_any_write", ("ISP_SOAK_OPERATOR_KILLS", "1000"))
            }
            Self::OperatorScale => ("api_scale", "many_objects", ("ISP_SCALE", "1000,5000,5000,60")),
            Self::PlanHistories => (PLAN, "every_history", ("ISP_PLAN_CASES", "20000")),
            Self::PlanFuzz => (PLAN, "whatever_others", ("ISP_FUZZ_CASES", "1000000")),
            Self::WebhookRotation => {
                ("lab_mesh", "the_address_arrives_in_the_mesh", ("ISP_SOAK_ROTATION", "120"))
            }
            Self::Hostile => ("lab_hostile", "does_not_hurt_its_users", ("ISP_SOAK_HOSTILE", "1")),
            Self::DemoBreaks => ("lab_demo", "broken_off_at_any_moment", ("ISP_SOAK_DEMO", "20")),
            Self::DemoFamilies => ("lab_demo", "with_ipv6_every_cell", ("ISP_SOAK_FAMILIES", "all")),
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
            Self::OperatorKills => "operator-kills",
            Self::OperatorScale => "operator-scale",
            Self::PlanHistories => "plan-histories",
            Self::PlanFuzz => "plan-fuzz",
            Self::WebhookRotation => "webhook-rotation",
            Self::WebhookReviews => "webhook-reviews",
            Self::Hostile => "hostile",
            Self::DemoBreaks => "demo-breaks",
            Self::DemoFamilies => "demo-families",
        })
    }
}

/// Runs a campaign, which prints its figures.
pub(crate) fn run(workspace: &Workspace, campaign: Campaign) -> Result<(), ProcessError> {
    lab::build(workspace)?;
    let (test, filter, (variable, length)) = campaign.test();
    println!("soak: {campaign}");
    let mut cargo = process::cargo(&workspace.root);
    cargo.arg("test");
    match test {
        package @ (PLAN | WEBHOOK) => cargo.args(["--release", "--package", package, "--lib"]),
        // Tests of memory and time use the release profile, as shipped.
        "api_flood" | "api_scale" => cargo.args(["--release", "--workspace", "--test", test]),
        _ => cargo.args(["--workspace", "--test", test]),
    };
    cargo.args(["--", filter, "--test-threads=1", "--nocapture"]);
    process::run(cargo.env(variable, length))
}
