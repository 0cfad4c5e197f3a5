//! `cargo xtask soak <name>`: a long campaign in full. The same test runs in a short form with its layer; a variable
//! tells it how far to go.

use std::fmt;

use clap::ValueEnum;

use crate::lab;
use crate::process::{self, ProcessError};
use crate::workspace::Workspace;

/// The campaigns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Campaign {
    /// Twenty labs up and down in a row, each leaving nothing behind
    LabCycles,
    /// A view that changes 200 times under 2,000 Services that churn
    FilterViews,
    /// Agent, kube-proxy and API server killed 200 times under 2,000 Services that churn
    FilterKills,
    /// Two hundred connections without a credential for ten minutes, against an agent with the memory of its container
    AgentFlood,
    /// The operator killed after each single write of its way on and off, on a way of its own each
    OperatorKills,
    /// The operator with 1,000 objects, 5,000 nodes and 5,000 Services
    OperatorScale,
    /// 20,000 generated histories of a cluster, each write judged by the interlocks
    PlanHistories,
    /// A million clusters with annotations, labels, statuses and objects that somebody hostile wrote
    PlanFuzz,
    /// Certificates and authorities that change every few seconds for two minutes, in a mesh in which pods are created
    WebhookRotation,
    /// More than a million reviews that are none, or nearly
    WebhookReviews,
    /// Everything that a hostile cluster can do, in nftables and in iptables mode, under traffic
    Hostile,
    /// The demo broken off at forty moments, half of them in a mesh, each leaving nothing behind
    DemoBreaks,
    /// The demo with both IP families and with IPv6 alone, in nftables and iptables mode
    DemoFamilies,
}

/// Crates whose unit tests have campaigns.
const PLAN: &str = "isp-plan";
const WEBHOOK: &str = "isp-webhook";

impl Campaign {
    /// The integration test, or the crate of the unit test, the part of its name that picks the test, and the variable with
    /// its full length.
    fn test(self) -> (&'static str, &'static str, (&'static str, &'static str)) {
        match self {
            Self::LabCycles => ("lab_lifecycle", "up_and_down_again_and_again", ("ISP_SOAK_CYCLES", "20")),
            Self::FilterViews => ("lab_filter", "a_view_that_changes_under_churn", ("ISP_SOAK_VIEWS", "200")),
            Self::FilterKills => ("lab_filter", "programs_killed_under_churn", ("ISP_SOAK_KILLS", "200")),
            Self::AgentFlood => ("api_flood", "two_hundred_connections", ("ISP_SOAK_FLOOD", "600")),
            // More than there are.
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
            // Of each of three kinds, one of them to both paths.
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

/// Runs a campaign to its end; what it prints are its figures.
pub(crate) fn run(workspace: &Workspace, campaign: Campaign) -> Result<(), ProcessError> {
    lab::build(workspace)?;
    let (test, filter, (variable, length)) = campaign.test();
    println!("soak: {campaign}");
    let mut cargo = process::cargo(&workspace.root);
    cargo.arg("test");
    match test {
        package @ (PLAN | WEBHOOK) => cargo.args(["--release", "--package", package, "--lib"]),
        // What uses much memory or time is measured as it is shipped.
        "api_flood" | "api_scale" => cargo.args(["--release", "--workspace", "--test", test]),
        _ => cargo.args(["--workspace", "--test", test]),
    };
    cargo.args(["--", filter, "--test-threads=1", "--nocapture"]);
    process::run(cargo.env(variable, length))
}
