//! What the manifest of a pod says about its rules. Pure.

use std::collections::BTreeMap;
use std::net::IpAddr;

use isp_api::names::{INTERCEPTION_MODE_ANNOTATION, REDIRECT_CONTAINER};
use isp_api::sidecar::Sidecar;
use isp_dataplane::redirect::{Method, Ports, Settings};
use isp_pod_rules::explain::{Claim, Facts, Mode, Origin, Process};
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};

#[cfg(test)]
mod tests;

const ISTIO_PROXY: &str = "istio-proxy";
const ISTIO_INIT: &str = "istio-init";
const INCLUDED_PORTS: &str = "traffic.sidecar.istio.io/includeInboundPorts";
const EXCLUDED_PORTS: &str = "traffic.sidecar.istio.io/excludeInboundPorts";

/// A pod's manifest.
pub(super) struct Manifest<'a> {
    spec: &'a PodSpec,
    annotations: BTreeMap<&'a str, &'a str>,
    sidecar: Option<Sidecar>,
    /// The arguments of our init container.
    settings: Option<Settings>,
}

impl<'a> Manifest<'a> {
    pub(super) fn of(pod: &'a Pod) -> Self {
        static NONE: std::sync::LazyLock<PodSpec> = std::sync::LazyLock::new(PodSpec::default);
        let spec = pod.spec.as_ref().unwrap_or(&NONE);
        let annotations = pod.metadata.annotations.iter().flatten();
        let ours = spec.init_containers.iter().flatten().find(|init| init.name == REDIRECT_CONTAINER);
        let arguments = ours.and_then(|init| init.args.clone());
        Self {
            spec,
            annotations: annotations.map(|(name, value)| (name.as_str(), value.as_str())).collect(),
            sidecar: Sidecar::of(pod),
            settings: arguments.and_then(|arguments| Settings::parse(arguments).ok()),
        }
    }

    pub(super) fn facts(&self, addresses: &[IpAddr]) -> Facts {
        let (proxies, others): (Vec<&Container>, Vec<&Container>) =
            self.running().partition(|container| self.is_proxy(container));
        let process = |container: &&Container| self.process(container);
        let ports = others.iter().flat_map(|container| container.ports.iter().flatten());
        let tcp = ports.filter(|port| port.protocol.as_deref().is_none_or(|protocol| protocol == "TCP"));
        Facts {
            addresses: addresses.to_vec(),
            claims: self.claims(),
            proxies: proxies.iter().filter_map(process).collect(),
            applications: others.iter().filter_map(process).collect(),
            ports: tcp.filter_map(|port| u16::try_from(port.container_port).ok()).collect(),
            left_out: self.left_out(),
        }
    }

    /// The program that wrote rules of this origin.
    pub(super) fn writer(&self, origins: &[Origin]) -> Option<&'static str> {
        let has_init = || self.spec.init_containers.iter().flatten().any(|init| init.name == ISTIO_INIT);
        match origins {
            [Origin::Istio] if has_init() => Some("init container istio-init"),
            // Without that container, only the plugin writes rules into a pod.
            [Origin::Istio] => Some("Istio's CNI plugin"),
            [Origin::PodRedirect] => Some("init container pod-redirect"),
            _ => None,
        }
    }

    /// Containers that run as long as the pod.
    fn running(&self) -> impl Iterator<Item = &'a Container> {
        let inits = self.spec.init_containers.iter().flatten();
        let sidecars = inits.filter(|init| init.restart_policy.as_deref() == Some("Always"));
        self.spec.containers.iter().chain(sidecars)
    }

    fn is_proxy(&self, container: &Container) -> bool {
        let exempt = self.settings.as_ref().map(|settings| &settings.exempt);
        let is_exempt = self.process(container).zip(exempt).is_some_and(|(process, exempt)| {
            exempt.uids.contains(&process.uid) || exempt.gids.contains(&process.gid)
        });
        is_exempt || container.name == ISTIO_PROXY
    }

    /// The user and the group of a container, if the manifest says so. Otherwise its image does.
    fn process(&self, container: &Container) -> Option<Process> {
        let (own, of_pod) = (container.security_context.as_ref(), self.spec.security_context.as_ref());
        let uid = own.and_then(|own| own.run_as_user).or(of_pod.and_then(|pod| pod.run_as_user))?;
        let gid = own.and_then(|own| own.run_as_group).or(of_pod.and_then(|pod| pod.run_as_group));
        Some(Process {
            container: container.name.clone(),
            uid: u32::try_from(uid).ok()?,
            gid: u32::try_from(gid.unwrap_or_default()).ok()?,
        })
    }

    fn claims(&self) -> Vec<Claim> {
        let claim = |mode: &str, by: &str| {
            let mode =
                [Mode::None, Mode::Redirect, Mode::Tproxy].into_iter().find(|each| each.name() == mode);
            mode.map(|mode| Claim { mode, by: by.to_owned() })
        };
        let annotation = self.annotations.get(INTERCEPTION_MODE_ANNOTATION);
        let of_annotation =
            annotation.and_then(|mode| claim(mode, &format!("annotation {INTERCEPTION_MODE_ANNOTATION}")));
        let sidecar = self.sidecar.as_ref();
        let of_proxy = sidecar.and_then(|sidecar| claim(&sidecar.proxy, "container istio-proxy"));
        let of_init = sidecar
            .and_then(|sidecar| sidecar.rules.as_deref())
            .and_then(|mode| claim(mode, "init container istio-init"));
        let ours = self.settings.as_ref().map(|settings| Claim {
            mode: match settings.inbound.as_ref().map(|inbound| inbound.method) {
                Some(Method::Tproxy) => Mode::Tproxy,
                Some(Method::Redirect) | None => Mode::Redirect,
            },
            by: format!("init container {REDIRECT_CONTAINER}"),
        });
        [of_annotation, of_proxy, of_init, ours].into_iter().flatten().collect()
    }

    /// The ports that do not go to the proxy, because the manifest says so.
    fn left_out(&self) -> Vec<(u16, u16)> {
        let single = |list: &str| -> Vec<(u16, u16)> {
            let ports = list.split(',').filter_map(|port| port.trim().parse().ok());
            ports.map(|port: u16| (port, port)).collect()
        };
        let mut found = self.annotations.get(EXCLUDED_PORTS).map(|list| single(list)).unwrap_or_default();
        if let Some(included) = self.annotations.get(INCLUDED_PORTS).filter(|list| **list != "*") {
            found.extend(others(single(included)));
        }
        if let Some(inbound) = self.settings.as_ref().and_then(|settings| settings.inbound.as_ref()) {
            let range = |range: &isp_dataplane::redirect::PortRange| (range.first, range.last);
            found.extend(inbound.except_ports.iter().map(range));
            if let Ports::Some(ports) = &inbound.ports {
                found.extend(others(ports.iter().map(range).collect()));
            }
        }
        found
    }
}

/// The ports outside of the ranges.
fn others(mut ranges: Vec<(u16, u16)>) -> Vec<(u16, u16)> {
    ranges.sort_unstable();
    let mut found = Vec::new();
    let mut next = 0_u32;
    for (first, last) in ranges {
        let start = u16::try_from(next).ok().filter(|start| *start < first);
        found.extend(start.map(|start| (start, first - 1)));
        next = next.max(u32::from(last) + 1);
    }
    found.extend(u16::try_from(next).ok().map(|start| (start, u16::MAX)));
    found
}
