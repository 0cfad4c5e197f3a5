//! The Events of a rollout: those about objects, agents' reports and Services.

use isp_report::model;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::ListParams;

use crate::connection::Connection;
use crate::error::CommandError;
use crate::read;

const KINDS: [&str; 3] = ["IngressSourcePreserve", "IngressSourceNode", "Service"];
/// Only so many of the latest are kept.
const MOST: usize = 500;

/// Reads the Events, the oldest first.
pub(super) async fn read(connection: &Connection) -> Result<Vec<model::Event>, CommandError> {
    let mut found: Vec<(Timestamp, model::Event)> = Vec::new();
    for kind in KINDS {
        let wanted = ListParams::default().fields(&format!("involvedObject.kind={kind}"));
        let api: Api<Event> = Api::all(connection.client.clone());
        read::each(connection, api, wanted, |event| found.extend(entry(&event))).await?;
    }
    found.sort_by(|a, b| (a.0, &a.1.object).cmp(&(b.0, &b.1.object)));
    let surplus = found.len().saturating_sub(MOST);
    Ok(found.into_iter().skip(surplus).map(|(_, event)| event).collect())
}

/// An Event in the words of the page. None if it has no time.
pub(super) fn entry(event: &Event) -> Option<(Timestamp, model::Event)> {
    let series = event.series.as_ref();
    let time = series
        .and_then(|series| series.last_observed_time.as_ref().map(|time| time.0))
        .or_else(|| event.last_timestamp.as_ref().map(|time| time.0))
        .or_else(|| event.event_time.as_ref().map(|time| time.0))
        .or_else(|| event.metadata.creation_timestamp.as_ref().map(|time| time.0))?;
    let about = &event.involved_object;
    let name = about.name.clone().unwrap_or_default();
    let name = match &about.namespace {
        Some(namespace) if !namespace.is_empty() => format!("{namespace}/{name}"),
        _ => name,
    };
    let count = series.and_then(|series| series.count).or(event.count).unwrap_or(1);
    let shown = model::Event {
        time: format!("{}", time.strftime("%Y-%m-%dT%H:%M:%SZ")),
        warning: event.type_.as_deref() == Some("Warning"),
        object: format!("{} {name}", about.kind.clone().unwrap_or_default()),
        reason: event.reason.clone().unwrap_or_default(),
        message: event.message.clone().unwrap_or_default(),
        count: u32::try_from(count).unwrap_or(1),
    };
    Some((time, shown))
}
