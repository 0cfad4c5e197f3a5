//! Reads and explains the rules of pods, one helper pod each.

use isp_plan::Key;
use isp_pod_rules::decode::PodRules;
use isp_pod_rules::dump::Dump;
use isp_pod_rules::explain::{Explanation, explain};

use super::facts::Manifest;
use super::target::Target;
use super::{RulesError, read};
use crate::cli::HelperArgs;
use crate::connection::Connection;
use crate::error::CommandError;
use crate::helper::{Helpers, Interrupt, access, image};

/// A pod with its rules.
pub(crate) struct Explained {
    pub(crate) target: Target,
    pub(crate) rules: PodRules,
    pub(crate) explanation: Explanation,
    pub(crate) written_by: Option<&'static str>,
}

pub(crate) struct Reader<'a> {
    connection: &'a Connection,
    helpers: Helpers<'a>,
    image: String,
    interrupt: Interrupt,
}

impl<'a> Reader<'a> {
    /// Checks the user's rights, and deletes helpers that a killed program has left.
    pub(crate) async fn open(
        connection: &'a Connection,
        arguments: &'a HelperArgs,
    ) -> Result<Self, CommandError> {
        let interrupt = Interrupt::listen()?;
        access::check(connection, &arguments.helper_namespace, &access::RUN_PODS, read::NEED).await?;
        let image = match &arguments.image {
            Some(image) => image.clone(),
            None => image::pod_redirect(connection, &arguments.operator_namespace).await,
        };
        let helpers = read::helpers(connection, &arguments.helper_namespace);
        helpers.remove_old().await?;
        Ok(Self { connection, helpers, image, interrupt })
    }

    /// Reads the rules of a pod.
    pub(crate) async fn explain(&self, pod: &Key) -> Result<Explained, CommandError> {
        let target = Target::find(self.connection, pod).await?;
        let text = Box::pin(read::read(&self.helpers, &target, &self.image, &self.interrupt)).await?;
        let dump: Dump = serde_json::from_str(&text).map_err(RulesError::Document)?;
        let rules = PodRules::decode(&dump).map_err(RulesError::Decode)?;
        let manifest = Manifest::of(&target.pod);
        let explanation = explain(&rules, &manifest.facts(&target.addresses));
        let written_by = manifest.writer(&explanation.origins);
        Ok(Explained { target, rules, explanation, written_by })
    }
}
