//! A finding: a stable code, a severity, a subject and a remedy.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

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
macro_rules! codes {
    ($($name:ident = $text:literal, $severity:ident;)*) => {
        /// The code. It never changes its meaning; the runbook has a heading for each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Code { $($name),* }

        impl Code {
            pub(crate) const ALL: &[Self] = &[$(Self::$name),*];

            pub(crate) fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }

            fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity),* }
            }
        }
    };
}

codes! {
    NodeNotReady = "ISP401", Error;
    OperatorUnavailable = "ISP101", Error;
    NotObserved = "ISP201", Error;
    ObjectsClash = "ISP202", Error;
    FieldDeclared = "ISP203", Error;
    NoIngressNodes = "ISP204", Error;
    ServiceMissing = "ISP205", Error;
    ServiceNotExposed = "ISP301", Error;
    ServiceProxyName = "ISP302", Error;
    NoKubeProxy = "ISP501", Error;
    KubeProxyAmbiguous = "ISP502", Error;
    LocalRangeTooWide = "ISP503", Error;
    IngressNodeWithoutAgent = "ISP411", Error;
    NodeWithoutPool = "ISP402", Error;
    AgentFailed = "ISP403", Error;
    AgentNotReady = "ISP404", Error;
    AgentSilent = "ISP405", Error;
    ProxyNotConnected = "ISP406", Error;
    AgentBehind = "ISP407", Error;
    NotRelisted = "ISP408", Error;
    NotProgrammed = "ISP409", Error;
    TwoProxies = "ISP410", Error;
    NotServed = "ISP412", Error;
    ServedByNobody = "ISP316", Error;
    NoIngressEndpoint = "ISP303", Error;
    NotLabelled = "ISP304", Error;
    PolicyNotLocal = "ISP305", Error;
    SourceRangeUnreadable = "ISP306", Error;
    WebhookUnavailable = "ISP102", Error;
    BundleEmpty = "ISP103", Error;
    BundleNotValid = "ISP104", Error;
    BundlesDiffer = "ISP105", Error;
    PodWebhookMissing = "ISP106", Error;
    PodWebhookLate = "ISP107", Error;
    AnnotationLies = "ISP601", Error;
    RulesDiffer = "ISP606", Error;
    TrustedProxies = "ISP703", Warning;
    ProxyProtocol = "ISP704", Note;
    IpModeProxy = "ISP310", Warning;
    PolicyRangeUnreadable = "ISP707", Error;
    PolicyOpen = "ISP701", Error;
    PolicyClosed = "ISP702", Error;
    LeftBehind = "ISP209", Warning;
    Paused = "ISP206", Warning;
    BundleEndsSoon = "ISP108", Warning;
    NotPreserved = "ISP307", Warning;
    IngressNodeWithoutEndpoint = "ISP308", Warning;
    NoExternalAddress = "ISP309", Warning;
    SourceRangesOpen = "ISP311", Warning;
    SourceRangesNodesOnly = "ISP312", Warning;
    NoHealthCheckPort = "ISP313", Warning;
    MasqueradeAll = "ISP504", Warning;
    NoLocalDetection = "ISP505", Warning;
    LocalRangeTooNarrow = "ISP506", Warning;
    PodSecurityRefuses = "ISP602", Warning;
    ModeChosen = "ISP603", Warning;
    SidecarsStale = "ISP604", Warning;
    NotReady = "ISP207", Warning;
    BeingDeleted = "ISP208", Note;
    NoNodePorts = "ISP314", Note;
    ModeIpvs = "ISP507", Note;
    SidecarHides = "ISP605", Note;
    PolicyMisled = "ISP705", Note;
    PolicyUnknown = "ISP706", Note;
    PolicyNotEnforced = "ISP708", Note;
    NotLookedAt = "ISP901", Note;
    AddressLost = "ISP315", Note;
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

/// The object that a finding is about, such as `Service web/frontend`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
pub(crate) struct Subject(String);

impl Subject {
    /// `Service web/frontend`, `Node work-1`.
    pub(crate) fn new(kind: &str, name: impl fmt::Display) -> Self {
        Self(format!("{kind} {name}"))
    }

    /// The cluster as a whole.
    pub(crate) fn cluster() -> Self {
        Self("Cluster".to_owned())
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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
}
