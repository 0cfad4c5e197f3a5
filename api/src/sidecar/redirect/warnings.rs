//! Warnings about a pod that gets the init container, but may not work with it.

use k8s_openapi::api::core::v1::{Container, PodSpec};

use super::Wanted;
use crate::preserve::{Exempt, InitOrder, Method, Redirect};

/// The capabilities of which one allows the socket option `IP_TRANSPARENT`.
const TRANSPARENT: [&str; 3] = ["ALL", "NET_ADMIN", "NET_RAW"];

/// Why a proxy needs a right with TPROXY.
const WHY: &str = "With method TPROXY the proxy must listen with the socket option IP_TRANSPARENT, which needs the capability NET_RAW or \
     NET_ADMIN; without it, connections pass the proxy by. The webhook gives no container a right.";

/// The warnings for the user who creates the pod.
pub fn warnings(wanted: Wanted<'_>, spec: &PodSpec) -> Vec<String> {
    let Wanted { object, redirect, contradicted_by } = wanted;
    let contradiction = contradicted_by.map(|other| {
        format!(
            "two entries of spec.sidecars select the pod and ask for different redirects: that of IngressSourcePreserve {object} is used, not \
             that of {other}. Make their selectors disjoint."
        )
    });
    contradiction
        .into_iter()
        .chain(cannot_be_transparent(redirect, spec))
        .chain(without_network(redirect, spec))
        .collect()
}

/// Containers that run as long as the pod.
fn lasting(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    spec.containers.iter().chain(spec.init_containers.iter().flatten().filter(|init| is_sidecar(init)))
}

/// Whether an init container is a native sidecar.
fn is_sidecar(init: &Container) -> bool {
    init.restart_policy.as_deref() == Some("Always")
}

fn user(container: &Container, spec: &PodSpec) -> Option<i64> {
    let own = container.security_context.as_ref().and_then(|context| context.run_as_user);
    own.or_else(|| spec.security_context.as_ref().and_then(|context| context.run_as_user))
}

fn group(container: &Container, spec: &PodSpec) -> Option<i64> {
    let own = container.security_context.as_ref().and_then(|context| context.run_as_group);
    own.or_else(|| spec.security_context.as_ref().and_then(|context| context.run_as_group))
}

/// The containers that may be the proxy: those with an exempt user or group, else all of them,
/// because users are often set in the image only.
fn proxies<'a>(exempt: Option<&Exempt>, spec: &'a PodSpec) -> Vec<&'a Container> {
    let among =
        |ids: &[u32], id: Option<i64>| id.is_some_and(|id| ids.iter().any(|each| i64::from(*each) == id));
    let known = |container: &&Container| {
        exempt.is_some_and(|exempt| {
            among(&exempt.uids, user(container, spec)) || among(&exempt.gids, group(container, spec))
        })
    };
    let found: Vec<&Container> = lasting(spec).filter(known).collect();
    if found.is_empty() { lasting(spec).collect() } else { found }
}

/// With TPROXY, a proxy that cannot listen transparently is passed by silently.
fn cannot_be_transparent(redirect: &Redirect, spec: &PodSpec) -> Option<String> {
    redirect.inbound.as_ref().filter(|inbound| inbound.method == Method::Tproxy)?;
    let proxies = proxies(redirect.exempt.as_ref(), spec);
    let has_right = |container: &&Container| {
        let context = container.security_context.as_ref();
        let added = context.and_then(|context| context.capabilities.as_ref()?.add.as_ref());
        context.is_some_and(|context| context.privileged == Some(true))
            || added.is_some_and(|added| added.iter().any(|name| TRANSPARENT.contains(&name.as_str())))
    };
    let (with, without): (Vec<&Container>, Vec<&Container>) = proxies.into_iter().partition(has_right);
    let has_effect = |container: &&Container| user(container, spec).is_none_or(|user| user == 0);
    if with.iter().any(has_effect) {
        return None;
    }
    let names = |containers: &[&Container]| {
        containers.iter().take(5).map(|each| format!("{:?}", each.name)).collect::<Vec<_>>().join(", ")
    };
    Some(if with.is_empty() {
        format!(
            "{WHY} Container {} has neither: add NET_RAW to the proxy's securityContext.capabilities.add and run it as user 0, or use method \
             REDIRECT.",
            names(&without)
        )
    } else {
        format!(
            "{WHY} Container {} adds it, but does not run as user 0, and gets it only if its program has it as a file capability (setcap \
             cap_net_raw+ep): else run it as user 0 and exempt it by its group.",
            names(&with)
        )
    })
}

/// Ordinary init containers that run between ours and the proxy.
fn without_network(redirect: &Redirect, spec: &PodSpec) -> Option<String> {
    let outbound = redirect.outbound.as_ref().filter(|_| redirect.init_order == InitOrder::First)?;
    let inits: Vec<&Container> = spec.init_containers.iter().flatten().collect();
    // A native sidecar may be the proxy, which then serves those after it.
    let before = inits.iter().take_while(|init| !is_sidecar(init));
    let names: Vec<String> = before.take(5).map(|init| format!("{:?}", init.name)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "init container {} runs before the proxy listens on port {}, to which its outbound connections are redirected: if it needs the \
             network, run the proxy as a native sidecar before it, or use initOrder Last.",
            names.join(", "),
            outbound.port
        )
    })
}
