//! `kubectl isp explain-node`: reads the facts about one node and prints their explanation.

mod explanation;

use isp_api::node::AgentMode;
use isp_api::{IngressSourceNode, IngressSourcePreserve};
use isp_plan::cluster::PodRole;
use isp_plan::observe;
use isp_plan::observe::runs_kube_proxy;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::ListParams;

pub(crate) use self::explanation::NodeReport;
use self::explanation::{Facts, explain, report};
use crate::Outcome;
use crate::cli::{ExplainNodeArgs, ListFormat};
use crate::connection::Connection;
use crate::error::CommandError;
use crate::{output, read};

pub(crate) async fn run(
    connection: &Connection,
    arguments: &ExplainNodeArgs,
) -> Result<Outcome, CommandError> {
    let name = arguments.node.as_str();
    let client = || connection.client.clone();
    let objects: Vec<IngressSourcePreserve> =
        read::all(connection, Api::all(client()), ListParams::default()).await?;
    let node = Api::<Node>::all(client()).get_opt(name).await;
    let node = node.map_err(|error| connection.problem("get", &read::resource::<Node>(), error))?;
    let node = node.ok_or_else(|| CommandError::NoNode(name.to_owned()))?;
    let mut reports = Vec::new();
    for mode in [AgentMode::Filter, AgentMode::Beside] {
        let report = Api::<IngressSourceNode>::all(client()).get_opt(&mode.report_name(name)).await;
        let problem = |error| connection.problem("get", &read::resource::<IngressSourceNode>(), error);
        reports.extend(report.map_err(problem)?);
    }
    let mut pods = Vec::new();
    let here = ListParams::default().fields(&format!("spec.nodeName={name}"));
    read::each(connection, Api::all(client()), here, |pod: Pod| {
        let proxies = pod.spec.iter().flat_map(|spec| &spec.containers).any(runs_kube_proxy);
        let concerns = |facts: &isp_plan::cluster::Pod| proxies || facts.role == Some(PodRole::Beside);
        if let Some(facts) = observe::pod(&pod).filter(concerns) {
            pods.push((observe::key(&pod.metadata), facts));
        }
    })
    .await?;
    let node = observe::node(&node);
    let width = output::width();
    let facts = Facts { name, node: &node, objects: &objects, reports: &reports, pods: &pods, width };
    let report = report(&facts);
    match arguments.output {
        None => output::print_painted(&explain(&facts))?,
        Some(ListFormat::Json) => output::print(&output::json(&report)?)?,
        Some(ListFormat::Yaml) => output::print(&output::yaml(&report)?)?,
    };
    Ok(Outcome::of(report.sound))
}
