//! `kubectl isp report`: one HTML file that shows the paths to the exposed Services, whose address
//! arrives on each, the policies that depend on it, and the rollout. Nothing is written to the
//! cluster.
//!
//! | module | knows |
//! |---|---|
//! | `facts` | what is read: the facts of `doctor`, Events, and the planned end |
//! | `planned` | the facts after the plan's last step |
//! | `state` | the facts of one stage, ready to be asked |
//! | `nodes`, `services` | nodes and Services in the words of the page |
//! | `ways`, `journey` | which paths are followed, and how each ends |
//! | `policies` | policies and findings |
//! | `events` | the timeline |
//! | `fill` | all of it as one report |
//! | `serve` | a server that shows it live |
//!
//! `isp_report` makes the page.

mod events;
mod facts;
mod fill;
mod journey;
mod nodes;
mod planned;
mod policies;
mod serve;
mod services;
mod state;
mod ways;

use std::path::Path;

use isp_report::page::{Use, html};

pub(crate) use self::serve::parse_listen;
use crate::Outcome;
use crate::cli::{PlaceArgs, ReportArgs, ReportCommand};
use crate::doctor::Origin;
use crate::error::CommandError;
use crate::{output, plan};

pub(crate) async fn run(place: &PlaceArgs, arguments: &ReportArgs) -> Result<Outcome, CommandError> {
    // The file is read first: a mistake in it is reported without a cluster.
    let wanted = arguments.file.as_deref().map(plan::file::read).transpose()?;
    let origin = Origin::open(place, arguments.from_dir.as_deref()).await?;
    let source = facts::Source { place, arguments, origin, wanted };
    if let Some(ReportCommand::Serve(listen)) = &arguments.command {
        return serve::run(&source, listen).await;
    }
    let facts = source.read().await?;
    let page = html(&fill::report(&facts, &arguments.service)?, Use::File);
    write(&page, &arguments.output)?;
    Ok(Outcome::Fine)
}

/// Writes the page to a file or, for `-`, to standard output.
fn write(page: &str, path: &Path) -> Result<(), CommandError> {
    if path == Path::new("-") {
        output::print(page)?;
        return Ok(());
    }
    std::fs::write(path, page)
        .map_err(|source| CommandError::NotWritten { path: path.to_owned(), source })?;
    output::print(&format!("{}\n", path.display()))?;
    Ok(())
}
