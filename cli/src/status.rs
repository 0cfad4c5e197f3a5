//! `kubectl isp status`: reads objects, the agents' reports, nodes and the operator's Lease, and
//! prints a report.
//!
//! | module | knows |
//! |---|---|
//! | `follow` | objects and reports as they change, for `--watch` |
//! | `operator` | whether an operator runs, by its Lease |
//! | `nodes` | labels of nodes, and the view that each should have |
//! | `lag` | what an agent has not acknowledged |
//! | `table`, `report`, `advice` | the text: a table, a block for each object, commands |

mod advice;
mod follow;
mod lag;
mod nodes;
mod operator;
mod report;
mod table;

use std::time::Duration;

use isp_api::{IngressSourceNode, IngressSourcePreserve};
use k8s_openapi::jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, Resource, ResourceExt};
use serde_json::{Value, json};
use tokio::time::timeout;

use self::follow::Following;
pub(crate) use self::lag::{Wanted, unserved};
use self::nodes::Nodes;
use self::operator::Operator;
use self::report::Context;
pub(crate) use self::report::is_ready;
use crate::Outcome;
use crate::cli::{Format, StatusArgs};
use crate::connection::Connection;
use crate::error::CommandError;
use crate::output::{self, Reader, Symbols};
use crate::read;

const NO_OBJECTS: &str = "there is no IngressSourcePreserve in this cluster\n";
/// While nothing changes, a watch looks at the operator's Lease and at nodes this often.
const RECHECK: Duration = Duration::from_secs(30);

/// One report.
struct Shown {
    text: String,
    /// The same report at a fixed time, so that passing time alone is no change.
    fingerprint: String,
    outcome: Outcome,
}

/// How reports are laid out, for the whole run.
struct Printer<'a> {
    connection: &'a Connection,
    arguments: &'a StatusArgs,
    started: Timestamp,
    width: Option<usize>,
    symbols: Symbols,
}

pub(crate) async fn run(connection: &Connection, arguments: &StatusArgs) -> Result<Outcome, CommandError> {
    let raw = match (arguments.output, arguments.watch) {
        (Some(Format::Json), true) => return Err(CommandError::WatchedList("json")),
        (Some(Format::Yaml), true) => return Err(CommandError::WatchedList("yaml")),
        (Some(Format::Json), false) => Some(Format::Json),
        (Some(Format::Yaml), false) => Some(Format::Yaml),
        (Some(Format::Wide) | None, _) => None,
    };
    if let Some(format) = raw {
        return print_list(connection, arguments, format).await;
    }
    let printer = Printer {
        connection,
        arguments,
        started: Timestamp::now(),
        width: output::width(),
        symbols: Symbols::of_environment(),
    };
    let name = arguments.name.as_deref();
    let objects = Api::<IngressSourcePreserve>::all(connection.client.clone());
    let objects = chosen(read::all(connection, objects, ListParams::default()).await?, name)?;
    let reports = Api::<IngressSourceNode>::all(connection.client.clone());
    let reports = read::all(connection, reports, ListParams::default()).await?;
    let shown = printer.show(&objects, &reports, &nodes::read(connection).await?).await;
    let reader = output::print_painted(&shown.text)?;
    if !arguments.watch || reader == Reader::Closed {
        return Ok(shown.outcome);
    }
    drop((objects, reports));
    printer.watch(shown).await
}

/// All objects, or the named one.
fn chosen<K: ResourceExt>(mut objects: Vec<K>, name: Option<&str>) -> Result<Vec<K>, CommandError> {
    let Some(name) = name else { return Ok(objects) };
    let known: Vec<String> = objects.iter().map(ResourceExt::name_any).collect();
    objects.retain(|object| object.name_any() == name);
    if objects.is_empty() {
        return Err(CommandError::NoObject { name: name.to_owned(), known });
    }
    Ok(objects)
}

fn outcome(objects_ready: bool, operator: &Operator) -> Outcome {
    Outcome::of(objects_ready && !operator.is_down())
}

impl Printer<'_> {
    async fn show(
        &self,
        objects: &[IngressSourcePreserve],
        reports: &[IngressSourceNode],
        nodes: &Nodes,
    ) -> Shown {
        if objects.is_empty() {
            let text = NO_OBJECTS.to_owned();
            return Shown { fingerprint: text.clone(), text, outcome: Outcome::Fine };
        }
        let now = Timestamp::now();
        let namespace = &self.arguments.operator_namespace;
        let operator = Operator::read(self.connection, namespace, now).await;
        let context = Context {
            reports,
            nodes,
            operator: &operator,
            now,
            wide: self.arguments.output == Some(Format::Wide),
            width: self.width,
            symbols: self.symbols,
        };
        Shown {
            text: report::report(objects, &context),
            fingerprint: report::report(objects, &Context { now: self.started, ..context }),
            outcome: outcome(objects.iter().all(is_ready), &operator),
        }
    }

    /// Prints a report whenever it differs from the last one, until nobody reads.
    async fn watch(&self, first: Shown) -> Result<Outcome, CommandError> {
        let client = &self.connection.client;
        let mut following = Following::new(client, self.arguments.name.as_deref());
        let (mut last, mut nodes) = (first, None);
        loop {
            let changed = timeout(RECHECK, following.change()).await;
            if changed.is_err() || nodes.is_none() {
                // A failure is told by the watches, which fail as well.
                nodes = nodes::read(self.connection).await.unwrap_or(nodes);
            }
            let Some((objects, reports)) = following.known() else { continue };
            let shown = self.show(&objects, &reports, &nodes).await;
            if shown.fingerprint == last.fingerprint {
                continue;
            }
            let now = Timestamp::now().strftime("%H:%M:%S UTC").to_string();
            if output::print_separator(&now)? == Reader::Closed
                || output::print_painted(&shown.text)? == Reader::Closed
            {
                return Ok(shown.outcome);
            }
            last = shown;
        }
    }
}

/// Prints the objects as the API server has them, but without `managedFields`.
async fn print_list(
    connection: &Connection,
    arguments: &StatusArgs,
    format: Format,
) -> Result<Outcome, CommandError> {
    let kind = ApiResource::erase::<IngressSourcePreserve>(&());
    let mut all: Vec<DynamicObject> = Vec::new();
    read::each_of(connection, &kind, ListParams::default(), |mut object| {
        object.meta_mut().managed_fields = None;
        all.push(object);
    })
    .await?;
    let items = json!(chosen(all, arguments.name.as_deref())?);
    let ready = |object: &Value| {
        serde_json::from_value::<IngressSourcePreserve>(object.clone()).is_ok_and(|object| is_ready(&object))
    };
    let items_ready = items.as_array().is_some_and(|items| items.iter().all(ready));
    let empty = items.as_array().is_some_and(Vec::is_empty);
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    let text = match format {
        Format::Yaml => output::yaml(&list)?,
        Format::Json | Format::Wide => output::json(&list)?,
    };
    output::print(&text)?;
    if empty {
        return Ok(Outcome::Fine);
    }
    let now = Timestamp::now();
    let operator = Operator::read(connection, &arguments.operator_namespace, now).await;
    if let Some(notice) = operator.notice(now) {
        eprintln!("warning: {notice}");
    }
    Ok(outcome(items_ready, &operator))
}
