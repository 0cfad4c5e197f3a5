//! An entry of the API as settings of the init container, and their problems as problems of fields.

use std::fmt;
use std::net::IpAddr;

use isp_api::preserve::{Cgroup, Exempt, Inbound, Method, Outbound, Redirect};
use isp_dataplane::redirect as dataplane;
use isp_dataplane::redirect::{Mark, PortRange, Ports, Problem, Routing, Setting, Settings};

/// A value of a redirect that cannot work. Its text begins with the path of the field, as in
/// `.outbound.port: ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldProblem {
    field: &'static str,
    value: String,
    reason: String,
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, value, reason } = self;
        write!(f, "{field}: {value:?}: {reason}")
    }
}

impl From<Problem> for FieldProblem {
    fn from(Problem { setting, value, reason }: Problem) -> Self {
        Self { field: field(setting), value, reason }
    }
}

/// All problems of a redirect: those that the schema rejects, for objects that were stored under
/// another one, and those that it cannot express.
pub fn problems(redirect: &Redirect) -> Vec<FieldProblem> {
    match settings(redirect) {
        Ok(settings) => settings.problems().into_iter().map(FieldProblem::from).collect(),
        Err(problem) => vec![problem],
    }
}

/// The arguments of the init container, or the first problem.
pub fn arguments(redirect: &Redirect) -> Result<Vec<String>, FieldProblem> {
    let settings = settings(redirect)?;
    settings.check()?;
    Ok(settings.arguments())
}

fn settings(redirect: &Redirect) -> Result<Settings, FieldProblem> {
    let outbound = redirect.outbound.as_ref().map(outbound).transpose()?;
    Ok(Settings {
        inbound: redirect.inbound.as_ref().map(inbound),
        outbound,
        exempt: redirect.exempt.as_ref().map(exempt).unwrap_or_default(),
        routing: Routing::DEFAULT,
    })
}

fn inbound(Inbound { method, port, ports, except_ports }: &Inbound) -> dataplane::Inbound {
    let method = match method {
        Method::Tproxy => dataplane::Method::Tproxy,
        Method::Redirect => dataplane::Method::Redirect,
    };
    dataplane::Inbound { method, port: *port, ports: named(ports), except_ports: ranges(except_ports) }
}

fn outbound(wanted: &Outbound) -> Result<dataplane::Outbound, FieldProblem> {
    let Outbound { port, destinations, ports, except_destinations, except_ports } = wanted;
    Ok(dataplane::Outbound {
        port: *port,
        destinations: networks(destinations, Setting::OutboundDestinations)?,
        ports: named(ports),
        except_destinations: networks(except_destinations, Setting::OutboundExceptDestinations)?,
        except_ports: ranges(except_ports),
    })
}

/// The type of a network is that of the settings.
fn networks<N>(texts: &[String], setting: Setting) -> Result<Vec<N>, FieldProblem>
where
    N: std::str::FromStr + From<IpAddr>,
{
    let network = |text: &String| {
        let address = || text.parse::<IpAddr>().map(N::from);
        text.parse::<N>().or_else(|_| address()).map_err(|_| FieldProblem {
            field: field(setting),
            value: text.clone(),
            reason: "this is neither an IP address nor a CIDR range: use one such as 10.96.0.0/12".to_owned(),
        })
    };
    texts.iter().map(network).collect()
}

fn exempt(Exempt { uids, gids, marks, cgroup }: &Exempt) -> dataplane::Exempt {
    let Cgroup { path, class_id } = cgroup.clone().unwrap_or_default();
    dataplane::Exempt {
        uids: uids.clone(),
        gids: gids.clone(),
        marks: marks.iter().map(|value| Mark { value: *value, mask: u32::MAX }).collect(),
        net_cls: class_id.into_iter().collect(),
        cgroups: path.into_iter().collect(),
    }
}

/// In the API, no list means all ports.
fn named(ports: &[u16]) -> Ports {
    if ports.is_empty() { Ports::All } else { Ports::Some(ranges(ports)) }
}

fn ranges(ports: &[u16]) -> Vec<PortRange> {
    ports.iter().copied().map(PortRange::one).collect()
}

/// The path of a setting in the API, from the redirect.
fn field(setting: Setting) -> &'static str {
    match setting {
        Setting::InboundMethod => ".inbound.method",
        Setting::InboundPort => ".inbound.port",
        Setting::InboundPorts => ".inbound.ports",
        Setting::InboundExceptPorts => ".inbound.exceptPorts",
        Setting::OutboundPort => ".outbound.port",
        Setting::OutboundDestinations => ".outbound.destinations",
        Setting::OutboundPorts => ".outbound.ports",
        Setting::OutboundExceptDestinations => ".outbound.exceptDestinations",
        Setting::OutboundExceptPorts => ".outbound.exceptPorts",
        Setting::ExemptUids => ".exempt.uids",
        Setting::ExemptGids => ".exempt.gids",
        Setting::ExemptMarks => ".exempt.marks",
        Setting::ExemptNetCls => ".exempt.cgroup.classId",
        Setting::ExemptCgroups => ".exempt.cgroup.path",
        // The API does not have these two: they are the defaults.
        Setting::Mark | Setting::Table => "",
    }
}
