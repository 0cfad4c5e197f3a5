//! `kubectl isp plan`: reads the file and the cluster, simulates the operator, prints the result.
//!
//! | module | knows |
//! |---|---|
//! | `file`, `snapshot`, `image` | the input: the file, the cluster, the agents' image |
//! | `merge` | the objects after the file is applied |
//! | `forecast` | the simulation, and its result as data |
//! | `end` | the cluster after the last step, for `report` |
//! | `describe` | one sentence for each action |
//! | `redirects` | what new pods get, in words |
//! | `render` | the result as text |

mod describe;
mod end;
pub(crate) mod file;
mod forecast;
mod image;
mod merge;
mod redirects;
mod render;
mod snapshot;

pub(crate) use self::end::{Planned, end};

use isp_api::IngressSourcePreserve;
use isp_plan::Settings;
use k8s_openapi::jiff::Timestamp;

use crate::Outcome;
use crate::cli::{ListFormat, PlanArgs};
use crate::connection::Connection;
use crate::error::CommandError;
use crate::output;
use crate::text::wrap_lines;

pub(crate) async fn run(
    connection: &Connection,
    arguments: &PlanArgs,
    wanted: Vec<IngressSourcePreserve>,
) -> Result<Outcome, CommandError> {
    let now = Timestamp::now();
    let before = snapshot::objects(connection).await?;
    let (objects, changes) = merge::merge(before.clone(), wanted, now);
    let cluster = snapshot::read(connection, objects).await?;
    let agent_image = match &arguments.agent_image {
        Some(image) => image.clone(),
        None => image::find(connection, &arguments.namespace, &cluster).await,
    };
    let settings = Settings {
        agent_image,
        agent_pull_secrets: Vec::new(),
        namespace: arguments.namespace.clone(),
        cleanup: false,
    };
    let forecast = forecast::forecast(cluster, &before, settings, now, &changes);
    match arguments.output {
        None => {
            let text = wrap_lines(&render::render(&forecast), output::width(), render::INDENT);
            output::print_painted(&text)?
        }
        Some(ListFormat::Json) => output::print(&output::json(&forecast)?)?,
        Some(ListFormat::Yaml) => output::print(&output::yaml(&forecast)?)?,
    };
    Ok(Outcome::of(forecast.ready()))
}
