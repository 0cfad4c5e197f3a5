//! `kubectl isp status`: reads objects and reports, and has `story` tell.

mod advice;
mod follow;
mod story;

use isp_api::{IngressSourceNode, IngressSourcePreserve};
use k8s_openapi::jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, Resource, ResourceExt};
use serde_json::{Value, json};

use self::follow::Following;
pub(crate) use self::story::{is_ready, lag};
use crate::Outcome;
use crate::cli::{Format, StatusArgs};
use crate::connection::Connection;
use crate::error::CommandError;
use crate::output::{self, Reader};
use crate::read;

const NOTHING: &str = "there is no IngressSourcePreserve in this cluster\n";

/// What is shown at a time.
struct Shown {
    text: String,
    outcome: Outcome,
}

impl Shown {
    fn of(objects: &[IngressSourcePreserve], nodes: &[IngressSourceNode], wide: bool) -> Self {
        let text = if objects.is_empty() { NOTHING.to_owned() } else { story::tell(objects, nodes, wide) };
        Self { text, outcome: Outcome::of(objects.iter().all(is_ready)) }
    }
}

pub(crate) async fn run(connection: &Connection, arguments: &StatusArgs) -> Result<Outcome, CommandError> {
    let name = arguments.name.as_deref();
    let raw = match (arguments.output, arguments.watch) {
        (Some(Format::Json), true) => return Err(CommandError::WatchedList("json")),
        (Some(Format::Yaml), true) => return Err(CommandError::WatchedList("yaml")),
        (Some(Format::Json), false) => Some(Format::Json),
        (Some(Format::Yaml), false) => Some(Format::Yaml),
        (Some(Format::Wide) | None, _) => None,
    };
    if let Some(format) = raw {
        return print_list(connection, name, format).await;
    }
    let wide = arguments.output == Some(Format::Wide);
    let objects = Api::<IngressSourcePreserve>::all(connection.client.clone());
    let objects = chosen(read::all(connection, objects, ListParams::default()).await?, name)?;
    let reports = Api::<IngressSourceNode>::all(connection.client.clone());
    let reports = read::all(connection, reports, ListParams::default()).await?;
    let shown = Shown::of(&objects, &reports, wide);
    let reader = output::print_painted(&shown.text)?;
    if !arguments.watch || reader == Reader::Gone {
        return Ok(shown.outcome);
    }
    drop((objects, reports));
    watch(connection, name, wide, shown).await
}

/// All, or the one that is meant.
fn chosen<K: ResourceExt>(mut objects: Vec<K>, name: Option<&str>) -> Result<Vec<K>, CommandError> {
    let Some(name) = name else { return Ok(objects) };
    let known: Vec<String> = objects.iter().map(ResourceExt::name_any).collect();
    objects.retain(|object| object.name_any() == name);
    if objects.is_empty() {
        return Err(CommandError::NoObject { name: name.to_owned(), known });
    }
    Ok(objects)
}

/// Shows it again when it is told differently, until nobody reads.
async fn watch(
    connection: &Connection,
    name: Option<&str>,
    wide: bool,
    first: Shown,
) -> Result<Outcome, CommandError> {
    let mut following = Following::new(&connection.client, name);
    let mut last = first;
    loop {
        let (objects, reports) = following.change().await;
        let shown = Shown::of(&objects, &reports, wide);
        if shown.text == last.text {
            continue;
        }
        let now = Timestamp::now().strftime("%H:%M:%S UTC").to_string();
        if output::print_separator(&now)? == Reader::Gone
            || output::print_painted(&shown.text)? == Reader::Gone
        {
            return Ok(shown.outcome);
        }
        last = shown;
    }
}

/// The objects as the API has them, without what the API server keeps about their writers.
async fn print_list(
    connection: &Connection,
    name: Option<&str>,
    format: Format,
) -> Result<Outcome, CommandError> {
    let kind = ApiResource::erase::<IngressSourcePreserve>(&());
    let api: Api<DynamicObject> = Api::all_with(connection.client.clone(), &kind);
    let all = api.list(&ListParams::default()).await;
    let all =
        all.map_err(|error| connection.problem("list", &read::resource::<IngressSourcePreserve>(), error))?;
    let mut objects = chosen(all.items, name)?;
    for object in &mut objects {
        object.meta_mut().managed_fields = None;
    }
    let items = json!(objects);
    let ready = |object: &Value| {
        serde_json::from_value::<IngressSourcePreserve>(object.clone()).is_ok_and(|object| is_ready(&object))
    };
    let fine = items.as_array().is_some_and(|items| items.iter().all(ready));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    let text = match format {
        Format::Yaml => serde_yaml::to_string(&list).unwrap_or_default(),
        Format::Json | Format::Wide => format!("{list:#}\n"),
    };
    output::print(&text)?;
    Ok(Outcome::of(fine))
}
