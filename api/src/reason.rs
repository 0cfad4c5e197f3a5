//! The reasons of conditions and Events. They are a stable part of the API.

use std::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// A reason of a condition or an Event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $($(#[$doc])* $name,)+
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The reason as written in the API.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }

            /// Parses a reason. None for reasons of other operator versions.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|reason| reason.as_str() == word)
            }
        }
    };
}

reasons! {
    /// `AgentsReady`: the agents' account does not exist yet.
    AccountMissing,
    /// `AgentsReady`: a foreign object has the name of the agents' account.
    AccountTaken,
    /// `Acknowledged`: every non-ingress node has acknowledged the current generation.
    Acknowledged,
    /// `AgentsReady`, `Degraded`: an agent is not ready.
    AgentNotReady,
    /// `AgentsReady`: every non-ingress node has its agent.
    AgentsReady,
    /// `Checked`: a selector is invalid.
    BadSelector,
    /// `Checked`: all checks passed.
    Checked,
    /// `Ready`: the condition `Conflict` holds.
    Conflict,
    /// `SidecarsConsistent`: every selected pod has the requested interception mode.
    Consistent,
    /// `Ready`: the condition `Degraded` holds.
    Degraded,
    /// `Progressing`: nothing is left to do.
    Done,
    /// Event: a Service fell back to `externalTrafficPolicy: Cluster`.
    FellBack,
    /// `Conflict`: another field manager declares another value.
    FieldDeclared,
    /// `AgentsReady`: several DaemonSets run kube-proxy.
    KubeProxyAmbiguous,
    /// `AgentsReady`: no DaemonSet runs kube-proxy.
    KubeProxyNotFound,
    /// `Conflict`, `AgentsReady`: another manager keeps removing the node affinity from kube-proxy.
    KubeProxyNotKeptOff,
    /// `Acknowledged`: the cluster's own kube-proxy runs beside an agent.
    KubeProxyRuns,
    /// `AgentsReady`: no agent can be derived from this kube-proxy.
    KubeProxyUnusable,
    /// `Labelled`: every Service carries the label.
    Labelled,
    /// `Degraded`: the last node that serves a Service is no longer selected.
    LastIngressNode,
    /// `LocalPolicySet`: every Service has `externalTrafficPolicy: Local`.
    LocalPolicySet,
    /// `SidecarsConsistent`: a foreign object has a required name.
    NameTaken,
    /// `Checked`, `Degraded`: no ingress node has a ready endpoint of a Service.
    NoIngressEndpoint,
    /// `Checked`: the selector matches no node.
    NoIngressNodes,
    /// `Checked`, `Labelled`, `LocalPolicySet`: no Service is selected.
    NoServices,
    /// `AgentsReady`: a node is not ready, so it cannot get its agent.
    NodeNotReady,
    /// `AgentsReady`: a node matches no pool.
    NodeWithoutPool,
    /// `Conflict`, `Degraded`: the condition does not hold.
    None,
    /// `AgentsReady`: the rollout waits for other conditions.
    NotBegun,
    /// `Checked`: a Service is not reachable from outside the cluster.
    NotExposed,
    /// Event: every node shows a Service until an ingress node has an endpoint again.
    Open,
    /// `AgentsReady`: `spec.rollout.paused` is set.
    Paused,
    /// `SidecarsConsistent`: the API server does not serve MutatingAdmissionPolicies.
    PolicyUnavailable,
    /// `Conflict`: an older object has a pool of the same name with other settings.
    PoolDiffers,
    /// `Conflict`: a node is in this pool and in a pool of an older object with other settings.
    PoolOverlaps,
    /// `Ready`: the source IP is preserved.
    Preserved,
    /// `Progressing`: Services and nodes are being restored.
    Restoring,
    /// `Progressing`: everything is kept, by `deletionPolicy: Retain`.
    Retaining,
    /// `AgentsReady`: nodes are being handed over.
    RollingOut,
    /// `Acknowledged`: rules of another kube-proxy may be left on a node.
    RulesOutdated,
    /// `Conflict`: an older object already preserves the Service.
    ServiceClaimed,
    /// `Conflict`: an older object already marks its Services with the same label.
    ServiceLabelClaimed,
    /// `Checked`: a Service does not exist.
    ServiceMissing,
    /// `SidecarsConsistent`: pods have to be recreated.
    Stale,
    /// Event: pods have to be recreated.
    StaleSidecars,
    /// `Progressing`: stopped until a problem is fixed.
    Stopped,
    /// `Ready`, `Checked`: the object is being deleted.
    Terminating,
    /// The condition does not hold yet.
    Waiting,
    /// `AgentsReady`, `Degraded`: a node missed the deadline of its wave.
    WaveFailed,
    /// `SidecarsConsistent`: the webhook has not published its CA bundle.
    WebhookUnavailable,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl PartialEq<String> for Reason {
    fn eq(&self, text: &String) -> bool {
        self.as_str() == text
    }
}

impl PartialEq<Reason> for String {
    fn eq(&self, reason: &Reason) -> bool {
        self == reason.as_str()
    }
}
