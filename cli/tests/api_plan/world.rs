//! A control plane with the project installed, nodes that are only objects, and the operator as a
//! process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use isp_api::IngressSourcePreserve;
use isp_api::conditions::find;
use isp_api::names::condition;
use isp_lab::{ControlPlane, free_address};
use isp_testkit::control_plane::{self, SYSTEM};
use isp_testkit::simulated::agents::stand_in;
use isp_testkit::snapshot::{Depth, Part, Snapshot};
use isp_testkit::{Patience, Program, kube_proxy};
use kube::Api;
use serde_json::{Value, json};

use crate::done::{steps, writes};
use crate::planned::{PlanOutput, Step};
use crate::sample::Sample;

/// Everything may take this long on a busy machine.
const PATIENCE: Patience = Patience::of(Duration::from_mins(3));
/// Who has written nothing for this time is at rest.
const REST: Duration = Duration::from_secs(3);

pub(crate) struct World {
    control_plane: ControlPlane,
    /// With just the operator's rights: the audit log has nobody else's requests.
    kubeconfig: PathBuf,
    /// The image that the installed operator gives its agents.
    agent_image: String,
    _directory: tempfile::TempDir,
}

/// An operator that runs, and how many requests had been made before it.
pub(crate) struct Operator {
    program: Program,
    since: usize,
}

impl World {
    /// Installs everything as a user would. Pods of DaemonSets run and agents acknowledge from now
    /// on.
    pub(crate) async fn start() -> Self {
        let (control_plane, directory) = (ControlPlane::start().await.unwrap(), tempfile::tempdir().unwrap());
        let kubeconfig = directory.path().join("kubeconfig");
        let mut this = Self { control_plane, kubeconfig, agent_image: String::new(), _directory: directory };
        control_plane::install(&this.control_plane).await;
        this.publish_authority().await;
        let account = "sourcepreserve-operator";
        this.control_plane.write_kubeconfig_of(SYSTEM, account, &this.kubeconfig).await.unwrap();
        let variable = "{.spec.template.spec.containers[0].env[?(@.name==\"AGENT_IMAGE\")].value}";
        let output = format!("-o=jsonpath={variable}");
        this.agent_image = this.kubectl(&["get", "deployment", "-n", SYSTEM, account, &output]).await;
        this.control_plane.simulate_nodes().await.unwrap();
        stand_in(this.control_plane.client().unwrap());
        this
    }

    /// What the webhook would do: until it has, no pod is asked about. Any authority will do.
    async fn publish_authority(&self) {
        let admin: Value =
            serde_json::from_str(&std::fs::read_to_string(self.control_plane.kubeconfig()).unwrap()).unwrap();
        let bundle = &admin["clusters"][0]["cluster"]["certificate-authority-data"];
        assert!(bundle.is_string(), "{admin}");
        let patch =
            json!([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}]).to_string();
        let configuration = "validatingwebhookconfiguration/sourcepreserve.io";
        self.kubectl(&["patch", configuration, "--type=json", "-p", &patch]).await;
    }

    /// The cluster that the sample needs, at rest.
    pub(crate) async fn prepare(&self, sample: &Sample) {
        for objects in [kube_proxy::configuration(), kube_proxy::daemon_set(None), sample.cluster()] {
            control_plane::apply(&self.control_plane, &objects).await;
        }
        self.kubectl(&["wait", "node", "--all", "--for=condition=Ready", "--timeout=60s"]).await;
        self.kubectl(&["rollout", "status", "-n", "kube-system", "daemonset/kube-proxy", "--timeout=60s"])
            .await;
    }

    pub(crate) async fn plan(&self, sample: &Sample) -> PlanOutput {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-isp"));
        command
            .args(["plan", "-o", "json", "-f"])
            .arg(&sample.path)
            .env("KUBECONFIG", self.control_plane.kubeconfig());
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let [text, problem] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(problem, "", "{}", sample.name());
        isp_testkit::schema::assert_output("plan", &serde_json::from_str(&text).unwrap());
        PlanOutput::read(output.status.code(), text)
    }

    /// Applies the sample and has an operator carry it out, until it says what was told and comes
    /// to rest. The operator starts once all of the file is applied: as the plan, it sees the file
    /// as a whole.
    pub(crate) async fn carry_out(&self, sample: &Sample, plan: &PlanOutput) -> Operator {
        self.kubectl(&["apply", "-f", sample.path.to_str().unwrap()]).await;
        let since = self.control_plane.audit().unwrap().len();
        let operator = Operator { program: self.start_operator(), since };
        let objects: Api<IngressSourcePreserve> = Api::all(self.control_plane.client().unwrap());
        assert!(!plan.verdicts.is_empty(), "{}", plan.text);
        for verdict in &plan.verdicts {
            let what =
                format!("{} of {} says, as planned: {}", verdict.object, sample.name(), verdict.message);
            PATIENCE
                .until(&what, async || {
                    let object = objects.get(&verdict.object).await.map_err(|error| error.to_string())?;
                    let status = object.status.unwrap_or_default();
                    let said = find(&status.conditions, condition::READY);
                    let as_planned = status.observed_generation == object.metadata.generation
                        && said.is_some_and(|said| {
                            let reason = (said.status != "True").then(|| said.reason.clone());
                            (&reason, &said.message) == (&verdict.reason, &verdict.message)
                        });
                    if as_planned { Ok(()) } else { Err(format!("{said:?}")) }
                })
                .await;
        }
        let mut before = self.written(since);
        PATIENCE
            .until("the operator comes to rest", async || {
                tokio::time::sleep(REST).await;
                std::mem::replace(&mut before, self.written(since)) == before
            })
            .await;
        operator
    }

    fn start_operator(&self) -> Program {
        let path = Path::new(env!("CARGO_BIN_EXE_kubectl-isp")).with_file_name("operator");
        assert!(path.exists(), "{} is not there: cargo build -p isp-operator", path.display());
        let admin = free_address().unwrap();
        let mut command = Command::new(path);
        command.env("KUBECONFIG", &self.kubeconfig).env("POD_NAMESPACE", SYSTEM).env("POD_NAME", "operator");
        command
            .args(["run", &format!("--agent-image={}", self.agent_image), &format!("--admin={admin}")])
            .args(["--lease-duration=10s", "--renew-deadline=6s", "--renew-interval=1s"]);
        Program::start("operator", command, admin).unwrap()
    }

    fn written(&self, since: usize) -> usize {
        writes(&self.control_plane.audit().unwrap()[since..]).len()
    }

    /// What the operator has written since it started, in that order.
    pub(crate) fn done(&self, operator: &Operator) -> Vec<Step> {
        let requests = self.control_plane.audit().unwrap();
        steps(&writes(&requests[operator.since..]), &operator.program.log())
    }

    /// Deletes what the sample asked for. The operator ends when nothing of it is left.
    pub(crate) async fn put_back(&self, sample: &Sample, mut operator: Operator) {
        self.kubectl(&["delete", "-f", sample.path.to_str().unwrap(), "--timeout=180s"]).await;
        assert!(operator.program.end().unwrap(), "{}", operator.program.log());
    }

    /// Everything that the operator might change.
    pub(crate) async fn state(&self) -> Snapshot {
        let lists = [
            "/api/v1/nodes",
            "/api/v1/services",
            "/apis/apps/v1/daemonsets",
            "/apis/sourcepreserve.io/v1alpha1/ingresssourcenodes",
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
        ];
        let parts = lists.map(|list| Part::Each(list.to_owned()));
        Snapshot::take(&self.control_plane.client().unwrap(), Depth::Declared, &parts).await
    }

    /// An object, by its name after its namespace if it has one.
    pub(crate) async fn get(&self, kind: &str, object: &str) -> Value {
        let (namespace, name) = object.split_once('/').unwrap_or(("default", object));
        let found = self.kubectl(&["get", kind, "-n", namespace, name, "-o", "json"]).await;
        serde_json::from_str(&found).unwrap()
    }

    /// The DaemonSet of a pool's agents, by the name that a plan gives it: without its revision.
    /// There is one.
    pub(crate) async fn agents(&self, object: &str) -> Value {
        let (namespace, name) = object.split_once('/').unwrap();
        let pool = name.strip_prefix("proxy-agent-").unwrap();
        let labels = format!("app.kubernetes.io/name=proxy-agent,sourcepreserve.io/agent-pool={pool}");
        let found = self.kubectl(&["get", "daemonset", "-n", namespace, "-l", &labels, "-o", "json"]).await;
        let found: Value = serde_json::from_str(&found).unwrap();
        assert_eq!(found["items"].as_array().map(Vec::len), Some(1), "{found}");
        found["items"][0].clone()
    }

    /// Runs kubectl, which must succeed, and gives what it printed.
    pub(crate) async fn kubectl(&self, arguments: &[&str]) -> String {
        control_plane::kubectl(&self.control_plane, arguments).await
    }
}
