//! What a run will create, and the user's consent.

use std::io::{self, BufRead, IsTerminal, Write};

use super::ProbeError;
use super::canary::Treatment;
use super::nodes::Chosen;
use super::report::TargetKind;
use super::subject::Subject;
use crate::error::CommandError;
use crate::text::{count, few, printable};

/// What is created where.
pub(crate) struct Plan<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) target: TargetKind,
    pub(crate) treatment: &'a Treatment,
    pub(crate) chosen: &'a Chosen,
    pub(crate) helper_namespace: &'a str,
    pub(crate) image: &'a str,
}

impl Plan<'_> {
    /// The plan in words.
    pub(crate) fn text(&self) -> String {
        let Self { subject, chosen, .. } = self;
        let namespace = &subject.key.namespace;
        let mut lines = Vec::new();
        if self.target == TargetKind::Canary {
            let type_ = subject.service.spec.as_ref().and_then(|spec| spec.type_.as_deref());
            let cost = if type_ == Some("LoadBalancer") {
                "; your provider may create a load balancer for it, and charge for it"
            } else {
                ""
            };
            let selected = match self.treatment {
                Treatment::ByOperator { object } => {
                    format!("; IngressSourcePreserve {object} selects it, so the operator changes it")
                }
                _ => String::new(),
            };
            lines.push(format!(
                "Service {namespace}/isp-probe-...  a canary of the same shape as {}{cost}{selected}",
                subject.key
            ));
            lines.push(format!(
                "{} in {namespace}  the target, on {}",
                count(chosen.targets.len() as u64, "pod"),
                few(&chosen.targets)
            ));
        }
        lines.push(format!(
            "{} in {}  clients in the network of pods and of nodes, on {}",
            count(2 * chosen.clients.len() as u64, "pod"),
            self.helper_namespace,
            few(&chosen.clients)
        ));
        let what = match self.target {
            TargetKind::Canary => "the canary".to_owned(),
            TargetKind::Own => format!("Service {} itself", subject.key),
        };
        let lines: Vec<String> = lines.iter().map(|line| printable(line)).collect();
        let lines = lines.join("\n  ");
        format!(
            "This creates, for about a minute (image {}):\n  {lines}\nThey connect to {what}. Everything is deleted at the end, also \
             after an error or Ctrl-C.\n",
            printable(self.image)
        )
    }

    /// Shows the plan and asks. Standard output is for the result.
    pub(crate) fn confirm(&self, yes: bool) -> Result<(), CommandError> {
        let mut out = io::stderr().lock();
        out.write_all(self.text().as_bytes())?;
        if yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() {
            return Err(ProbeError::NoConsent.into());
        }
        out.write_all(b"Continue? [y/N] ")?;
        out.flush()?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(ProbeError::NoConsent.into()),
        }
    }
}
