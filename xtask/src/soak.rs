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
}

impl Campaign {
    /// The integration test, the part of its name that picks the test, and the variable with its full length.
    fn test(self) -> (&'static str, &'static str, (&'static str, &'static str)) {
        match self {
            Self::LabCycles => ("lab_lifecycle", "up_and_down_again_and_again", ("ISP_SOAK_CYCLES", "20")),
            Self::FilterViews => ("lab_filter", "a_view_that_changes_under_churn", ("ISP_SOAK_VIEWS", "200")),
            Self::FilterKills => ("lab_filter", "programs_killed_under_churn", ("ISP_SOAK_KILLS", "200")),
        }
    }
}

impl fmt::Display for Campaign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LabCycles => "lab-cycles",
            Self::FilterViews => "filter-views",
            Self::FilterKills => "filter-kills",
        })
    }
}

/// Runs a campaign to its end; what it prints are its figures.
pub(crate) fn run(workspace: &Workspace, campaign: Campaign) -> Result<(), ProcessError> {
    lab::build(workspace)?;
    let (test, filter, (variable, length)) = campaign.test();
    println!("soak: {campaign}");
    let mut cargo = process::cargo(&workspace.root);
    cargo.args(["test", "--workspace", "--test", test, "--", filter, "--test-threads=1", "--nocapture"]);
    process::run(cargo.env(variable, length))
}
