//! `kubectl isp probe`: real connections from this machine, from pods and from nodes to every
//! address of a Service; what the target saw beside what was expected.
//!
//! | module | knows |
//! |---|---|
//! | `subject` | the Service and the nodes, read from the cluster |
//! | `nodes` | which nodes run targets and clients; pure |
//! | `sidecar` | whether sidecars hide clients from the Service's own pods |
//! | `canary` | the shape of the canary, and whether it is treated as the Service is; pure |
//! | `pods` | the manifests; pure |
//! | `consent` | what will be created, and the user's consent |
//! | `session` | creates, waits, deletes |
//! | `question` | destinations, and how they are asked; pure |
//! | `here` | requests from this machine |
//! | `answers`, `access_log` | what clients and gateways have printed; pure |
//! | `expect` | what `isp_paths` expects |
//! | `table` | cells, judged; pure |
//! | `report`, `compare` | the text; pure |

mod access_log;
mod answers;
mod canary;
mod compare;
mod consent;
mod error;
mod expect;
mod here;
mod nodes;
mod own;
mod pods;
mod question;
mod report;
mod run;
mod saved;
mod session;
mod sidecar;
mod subject;
mod table;

use std::hash::{BuildHasher, Hasher, RandomState};

use self::canary::Treatment;
pub(crate) use self::compare::Compared;
use self::consent::Plan;
pub(crate) use self::error::ProbeError;
use self::nodes::NoChoice;
pub(crate) use self::nodes::NodeChoice;
use self::report::{Report, TargetKind};
use self::session::Session;
use self::subject::Subject;
use crate::Outcome;
use crate::cli::{ListFormat, PlaceArgs, ProbeArgs, ProbeTarget};
use crate::connection::Connection;
use crate::error::CommandError;
use crate::helper::access::{self, Need, Right};
use crate::helper::{Interrupt, after_deletion, image};
use crate::output;

const NEED: Need = Need {
    purpose: "probing takes short-lived pods",
    way_out: "choose another namespace for the clients with --helper-namespace",
};
const NEED_CANARY: Need = Need {
    purpose: "a canary takes a Service and pods in the namespace of the Service",
    way_out: "probe the Service itself with --target own",
};
const NEED_LOG: Need = Need {
    purpose: "the source IP is read from the access log of the Service's pods",
    way_out: "probe a canary",
};
const CANARY: [Right; 8] = [
    ("create", "pods"),
    ("get", "pods"),
    ("list", "pods"),
    ("delete", "pods"),
    ("create", "services"),
    ("get", "services"),
    ("list", "services"),
    ("delete", "services"),
];
const LOGS: [Right; 2] = [("get", "pods"), ("get", "pods/log")];

pub(crate) async fn run(place: &PlaceArgs, arguments: &ProbeArgs) -> Result<Outcome, CommandError> {
    // The file is read first: a mistake in it is reported without a cluster.
    let before = arguments.compare.as_deref().map(saved::read).transpose()?;
    if let Some(file) = &arguments.save {
        saved::check_place(file)?;
    }
    let connection = &Connection::open(place).await?;
    let subject = subject::read(connection, arguments.service.as_ref()).await?;
    if let Some((file, before)) = &before {
        saved::check(file, before, &subject.key)?;
    }
    let chosen = nodes::choose(&subject.candidates(), arguments.nodes.as_ref()).map_err(|why| match why {
        NoChoice::Unknown(node) => CommandError::NoNode(node),
        NoChoice::NotReady(node) => ProbeError::NodeNotReady(node).into(),
        NoChoice::NoEndpoints => ProbeError::NoEndpoints { service: subject.key.clone() }.into(),
    })?;
    let target = match arguments.target {
        ProbeTarget::Canary => TargetKind::Canary,
        ProbeTarget::Own => TargetKind::Own,
    };
    let run = format!("{:016x}", RandomState::new().build_hasher().finish());
    let name = format!("{}-{run}", pods::KIND.name);
    let (treatment, labels) = subject.canary(&name);
    if target == TargetKind::Canary {
        allow_canary(&subject, &treatment, &run)?;
    }
    let helper_namespace = &arguments.helper.helper_namespace;
    check_rights(connection, &subject, target, helper_namespace).await?;
    if target == TargetKind::Canary
        && let Some(pod) = sidecar::hiding(connection, &subject).await?
    {
        return Err(ProbeError::Hidden { service: subject.key, pod }.into());
    }
    let image = match &arguments.helper.image {
        Some(image) => image.clone(),
        None => image::probe(connection, &arguments.helper.operator_namespace).await,
    };
    let plan = Plan {
        subject: &subject,
        target,
        treatment: &treatment,
        chosen: &chosen,
        helper_namespace,
        image: &image,
    };
    plan.confirm(arguments.yes)?;

    // Before anything exists, a signal just ends the program, also while it waits for consent.
    let interrupt = Interrupt::listen()?;
    let mut session = Session::new(connection, &interrupt, &subject.key.namespace, helper_namespace, &image);
    session.remove_old(target == TargetKind::Canary).await?;
    let facts = run::Facts {
        subject: &subject,
        chosen: &chosen,
        treatment: &treatment,
        labels,
        run: &run,
        name: &name,
    };
    let result = match target {
        TargetKind::Canary => {
            run::canary(&mut session, connection, &facts, arguments.from_here, &interrupt).await
        }
        TargetKind::Own => run::own(&mut session, connection, &facts, arguments.from_here, &interrupt).await,
    };
    let report = after_deletion(result, session.remove().await)?;
    if let Some(file) = &arguments.save {
        saved::write(file, &report)?;
    }
    print(&report, before.as_ref().map(|(_, before)| before), arguments.output)?;
    Ok(Outcome::of(report.preserved && report.as_expected))
}

fn print(report: &Report, before: Option<&Report>, format: Option<ListFormat>) -> Result<(), CommandError> {
    let changes = before.map(|before| compare::differences(before, report));
    match format {
        None => {
            let mut text = report::text(report, output::width());
            if let Some(changes) = changes {
                text.push_str(&compare::text(&changes));
            }
            output::print_painted(&text)?
        }
        Some(ListFormat::Json) => output::print(&output::json(&Compared { report, changes })?)?,
        Some(ListFormat::Yaml) => output::print(&output::yaml(&Compared { report, changes })?)?,
    };
    Ok(())
}

/// Refuses a canary that would not tell how the Service is treated, or would harm it.
fn allow_canary(subject: &Subject, treatment: &Treatment, run: &str) -> Result<(), CommandError> {
    let service = subject.key.clone();
    match treatment {
        Treatment::Alike | Treatment::ByOperator { .. } => {}
        Treatment::NotServed { object } => {
            return Err(ProbeError::NotServed { service, object: object.clone() }.into());
        }
        Treatment::OfAnother { object } => {
            return Err(ProbeError::OfAnother { service, object: object.clone() }.into());
        }
    }
    let example = pods::target("", run, "", "");
    let labels = example.metadata.labels.unwrap_or_default();
    match canary::selected_by(&subject.neighbours, &labels) {
        // The canary of a run that was killed, or that runs now: it selects pods of its own run.
        Some(name) => Err(ProbeError::Selected(isp_plan::Key::new(&*subject.key.namespace, name)).into()),
        None => Ok(()),
    }
}

async fn check_rights(
    connection: &Connection,
    subject: &Subject,
    target: TargetKind,
    helper_namespace: &str,
) -> Result<(), CommandError> {
    access::check(connection, helper_namespace, &access::RUN_PODS, NEED).await?;
    let (rights, need): (&[Right], Need) = match target {
        TargetKind::Canary => (&CANARY, NEED_CANARY),
        TargetKind::Own => (&LOGS, NEED_LOG),
    };
    access::check(connection, &subject.key.namespace, rights, need).await
}
