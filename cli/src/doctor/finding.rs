//! A finding: a stable code, a severity, a subject and a remedy.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use crate::sarif;

/// The severity, in the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// The source IP is lost, or clients get no answer.
    Error,
    /// It works, but not for every client or not permanently.
    Warning,
    /// Worth knowing, but no fault.
    Note,
}

impl Severity {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// Declares the codes in the order of the report within a severity: causes before their effects.
/// The title is the heading of the runbook.
macro_rules! codes {
    ($($name:ident = $text:literal, $severity:ident, $title:literal;)*) => {
        /// The code. It never changes its meaning; the runbook has a heading for each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Code { $($name),* }

        impl Code {
            pub(crate) const ALL: &[Self] = &[$(Self::$name),*];

            pub(crate) fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }

            pub(crate) fn title(self) -> &'static str {
                match self { $(Self::$name => $title),* }
            }

            pub(crate) fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity),* }
            }
        }
    };
}

codes! {
    NodeNotReady = "ISP401", Error, "A node is not ready";
    OperatorUnavailable = "ISP101", Error, "The operator does not run";
    NotObserved = "ISP201", Error, "The operator has not observed the object";
    ObjectsClash = "ISP202", Error, "Two objects conflict";
    FieldDeclared = "ISP203", Error, "Another manager declares the field";
    NoIngressNodes = "ISP204", Error, "No ingress node";
    ServiceMissing = "ISP205", Error, "A Service is missing";
    ServiceNotExposed = "ISP301", Error, "A preserved Service is not exposed";
    ServiceProxyName = "ISP302", Error, "A label keeps every kube-proxy away";
    NoKubeProxy = "ISP501", Error, "kube-proxy is not a DaemonSet";
    KubeProxyAmbiguous = "ISP502", Error, "Several kube-proxies";
    LocalRangeTooWide = "ISP503", Error, "clusterCIDR is too wide";
    IngressNodeWithoutAgent = "ISP411", Error, "An ingress node without an agent";
    NodeWithoutPool = "ISP402", Error, "A node without a pool";
    AgentFailed = "ISP403", Error, "An agent missed its deadline";
    AgentNotReady = "ISP404", Error, "An agent is not ready";
    AgentSilent = "ISP405", Error, "An agent is silent";
    ProxyNotConnected = "ISP406", Error, "kube-proxy is not connected";
    AgentBehind = "ISP407", Error, "An agent is behind";
    NotRelisted = "ISP408", Error, "kube-proxy has not listed again";
    NotProgrammed = "ISP409", Error, "The rules are not updated";
    TwoProxies = "ISP410", Error, "Two kube-proxies on a node";
    NotServed = "ISP412", Error, "An agent does not serve a Service";
    ServedByNobody = "ISP316", Error, "A Service that nothing serves";
    NoIngressEndpoint = "ISP303", Error, "No endpoint on an ingress node";
    NotLabelled = "ISP304", Error, "A preserved Service lacks its label";
    PolicyNotLocal = "ISP305", Error, "The policy is not Local";
    SourceRangeUnreadable = "ISP306", Error, "A source range cannot be read";
    WebhookUnavailable = "ISP102", Error, "The webhook does not run";
    BundleEmpty = "ISP103", Error, "A caBundle is empty";
    BundleNotValid = "ISP104", Error, "A caBundle is not valid";
    BundlesDiffer = "ISP105", Error, "The caBundles differ";
    PodWebhookMissing = "ISP106", Error, "No configuration for pods";
    PodWebhookLate = "ISP107", Error, "The webhook is called after Istio's injector";
    AnnotationLies = "ISP601", Error, "A misleading annotation";
    RulesDiffer = "ISP606", Error, "The rules of a pod are not what it says";
    TrustedProxies = "ISP703", Warning, "A gateway trusts X-Forwarded-For";
    ProxyProtocol = "ISP704", Note, "A gateway expects the PROXY protocol";
    IpModeProxy = "ISP310", Warning, "The load balancer is a proxy";
    PolicyRangeUnreadable = "ISP707", Error, "A range of a policy cannot be read";
    PolicyOpen = "ISP701", Error, "An address policy fails open";
    PolicyClosed = "ISP702", Error, "An address policy fails closed";
    LeftBehind = "ISP209", Warning, "Changes of a deleted object";
    Paused = "ISP206", Warning, "The rollout is paused";
    BundleEndsSoon = "ISP108", Warning, "A caBundle expires soon";
    NotPreserved = "ISP307", Warning, "No object names the Service";
    IngressNodeWithoutEndpoint = "ISP308", Warning, "An ingress node without an endpoint";
    NoExternalAddress = "ISP309", Warning, "No external address";
    SourceRangesOpen = "ISP311", Warning, "A source range admits everybody";
    SourceRangesNodesOnly = "ISP312", Warning, "Source ranges of nodes only";
    NoHealthCheckPort = "ISP313", Warning, "No port for health checks";
    MasqueradeAll = "ISP504", Warning, "masqueradeAll is on";
    NoLocalDetection = "ISP505", Warning, "Local pods cannot be detected";
    LocalRangeTooNarrow = "ISP506", Warning, "clusterCIDR is too narrow";
    PodSecurityRefuses = "ISP602", Warning, "Pod Security rejects the sidecar";
    ModeChosen = "ISP603", Warning, "The pod sets another mode";
    SidecarsStale = "ISP604", Warning, "Stale sidecars";
    NotReady = "ISP207", Warning, "The object is not ready";
    BeingDeleted = "ISP208", Note, "The object is being deleted";
    NoNodePorts = "ISP314", Note, "No NodePorts";
    ModeIpvs = "ISP507", Note, "Mode ipvs";
    SidecarHides = "ISP605", Note, "A sidecar hides the client";
    PolicyMisled = "ISP705", Note, "A policy records the wrong address";
    PolicyUnknown = "ISP706", Note, "A policy that compares the gateway";
    PolicyNotEnforced = "ISP708", Note, "No proxy enforces a policy";
    NotLookedAt = "ISP901", Note, "Something was not checked";
    AddressLost = "ISP315", Note, "Services lose the source IP";
    ClusterTooOld = "ISP801", Warning, "Kubernetes is too old";
    KernelTooOld = "ISP802", Warning, "A kernel is too old for mode Beside";
    NodeUnfit = "ISP803", Note, "A node that no agent runs on";
    AgentsRejected = "ISP804", Warning, "Pod Security rejects the agents";
    ProxyNotRecognized = "ISP805", Note, "The Service proxy is not recognized";
    NoModeFits = "ISP806", Error, "No mode fits the cluster";
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl JsonSchema for Code {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Code".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let codes: Vec<&str> = Self::ALL.iter().map(|code| code.as_str()).collect();
        json_schema!({
            "description": "The code. It never changes its meaning; docs/doctor.md explains each.",
            "type": "string",
            "enum": codes,
        })
    }
}

/// The object that a finding is about, such as `Service web/frontend`. It is serialized as its
/// text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(with = "String")]
pub(crate) struct Subject {
    kind: String,
    /// Empty for the cluster as a whole.
    name: String,
}

impl Subject {
    /// `Service web/frontend`, `Node work-1`.
    pub(crate) fn new(kind: &str, name: impl fmt::Display) -> Self {
        Self { kind: kind.to_owned(), name: name.to_string() }
    }

    /// The cluster as a whole.
    pub(crate) fn cluster() -> Self {
        Self::new("Cluster", "")
    }

    pub(crate) fn kind(&self) -> &str {
        &self.kind
    }

    /// `web/frontend`, `work-1`, or nothing for the cluster as a whole.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name } = self;
        if name.is_empty() { f.write_str(kind) } else { write!(f, "{kind} {name}") }
    }
}

impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub(crate) struct Finding {
    pub(crate) code: Code,
    pub(crate) severity: Severity,
    pub(crate) subject: Subject,
    /// The fact.
    pub(crate) line: String,
    /// Why it matters.
    pub(crate) reason: String,
    /// The hops on a client's path that lead to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) path: Vec<String>,
    /// The remedy, one step or command each.
    pub(crate) remedy: Vec<String>,
    /// Its causes, if they are findings, too.
    #[serde(skip)]
    pub(crate) follows: Vec<(Code, Subject)>,
}

impl Finding {
    pub(crate) fn new(code: Code, subject: Subject, line: impl Into<String>) -> Self {
        let severity = code.severity();
        Self {
            code,
            severity,
            subject,
            line: line.into(),
            reason: String::new(),
            path: Vec::new(),
            remedy: Vec::new(),
            follows: Vec::new(),
        }
    }

    #[must_use]
    pub(crate) fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }

    #[must_use]
    pub(crate) fn along(mut self, path: Vec<String>) -> Self {
        self.path = path;
        self
    }

    #[must_use]
    pub(crate) fn do_this(mut self, step: impl Into<String>) -> Self {
        self.remedy.push(step.into());
        self
    }

    #[must_use]
    pub(crate) fn following(mut self, cause: Code, subject: Subject) -> Self {
        self.follows.push((cause, subject));
        self
    }

    /// Overrides the usual severity of the code.
    #[must_use]
    pub(crate) fn graded(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// The finding as a result of SARIF.
    pub(crate) fn result(&self) -> sarif::Finding {
        let Self { code, severity, subject, line, reason, path, remedy, .. } = self;
        let mut parts = vec![format!("{subject}: {line}"), reason.clone()];
        parts.extend(path.iter().cloned());
        parts.extend(remedy.iter().map(|step| format!("To do: {step}")));
        parts.retain(|part| !part.is_empty());
        sarif::Finding {
            code: *code,
            severity: *severity,
            subject: subject.clone(),
            message: parts.join("\n"),
        }
    }
}
