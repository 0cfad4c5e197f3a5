//! Reads what a report needs.

use isp_api::IngressSourcePreserve;
use isp_report::model;
use k8s_openapi::jiff::Timestamp;
use kube::config::Kubeconfig;

use super::events;
use crate::cli::{PlaceArgs, ReportArgs};
use crate::doctor::{Cluster, NEEDED, Origin};
use crate::error::CommandError;
use crate::plan::{self, Planned};

/// Where the facts come from.
pub(super) struct Source<'a> {
    pub(super) place: &'a PlaceArgs,
    pub(super) arguments: &'a ReportArgs,
    pub(super) origin: Origin,
    /// The objects of `-f`.
    pub(super) wanted: Option<Vec<IngressSourcePreserve>>,
}

/// Everything that was read.
pub(super) struct Facts {
    pub(super) cluster: Cluster,
    pub(super) now: Timestamp,
    /// A name for the cluster or the dump.
    pub(super) origin: String,
    pub(super) events: Vec<model::Event>,
    /// Why there are no Events.
    pub(super) no_events: Option<String>,
    /// The name of the file, and what it leads to.
    pub(super) planned: Option<(String, Planned)>,
}

impl Source<'_> {
    pub(super) async fn read(&self) -> Result<Facts, CommandError> {
        let (cluster, now) = self.origin.facts(&NEEDED).await?;
        let mut facts = Facts {
            cluster,
            now,
            origin: self.origin_name(),
            events: Vec::new(),
            no_events: Some("a dump has no Events: the timeline is empty".to_owned()),
            planned: None,
        };
        let Some(connection) = self.origin.connection() else { return Ok(facts) };
        match events::read(connection).await {
            Ok(events) => (facts.events, facts.no_events) = (events, None),
            Err(CommandError::Forbidden { .. }) => {
                let missing = "the right to list events is missing: the timeline is empty";
                facts.no_events = Some(missing.to_owned());
            }
            Err(error) => return Err(error),
        }
        if let (Some(wanted), Some(file)) = (&self.wanted, &self.arguments.file) {
            let end = plan::end(connection, wanted.clone(), &self.arguments.namespace).await?;
            let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
            facts.planned = Some((name.unwrap_or_else(|| "the file".to_owned()), end));
        }
        Ok(facts)
    }

    fn origin_name(&self) -> String {
        if let Origin::Dump(dump) = &self.origin {
            return format!("dump {}", dump.display());
        }
        let current = || {
            let read = match &self.place.kubeconfig {
                Some(path) => Kubeconfig::read_from(path),
                None => Kubeconfig::read(),
            };
            read.ok()?.current_context
        };
        match self.place.context.clone().or_else(current) {
            Some(context) => format!("context {context}"),
            None => "the cluster of this pod".to_owned(),
        }
    }
}
