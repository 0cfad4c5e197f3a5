//! Pods with a proxy of their own, through a real API server that calls the webhook by the
//! configuration that the operator writes: every pod of the table becomes what the function says.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "this is a test; clippy knows only its #[test] functions as such"
)]

use isp_api::IngressSourcePreserve;
use isp_api::sidecar::{Namespace, Rules};
use isp_lab::free_address;
use isp_plan::build::pod_policy::namespaces;
use isp_plan::build::pod_redirect::{Outcome, redirected};
use isp_plan::build::pod_webhook::{Asked, configuration};
use isp_testkit::control_plane::SYSTEM;
use isp_testkit::redirects::{IMAGE, Row, entries, rows};
use isp_testkit::until;
use isp_testkit::webhook::{Cluster, Replica};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_webhook");

fn object() -> Value {
    json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve", "metadata": {"name": "shop"},
        "spec": {
            "ingressNodes": {"selector": {"matchLabels": {"ingress": "yes"}}},
            "services": [{"namespace": "default", "name": "web"}],
            "sidecars": entries(),
        },
    })
}

/// The configuration that the operator writes, with the address of the replica.
fn asked(object: &IngressSourcePreserve, bundle: &[u8], address: std::net::SocketAddr) -> Value {
    let asked: Vec<Asked> = object
        .spec
        .sidecars
        .iter()
        .map(|entry| Asked {
            namespaces: namespaces(&entry.namespace_selector, SYSTEM),
            pods: entry.pod_selector.clone(),
            redirect: true,
        })
        .collect();
    let bundle = json!(k8s_openapi::ByteString(bundle.to_vec()));
    let mut configuration = configuration(&asked, bundle.as_str().unwrap(), SYSTEM);
    for webhook in configuration["webhooks"].as_array_mut().unwrap() {
        // There are no nodes that would run a Service. Its certificate has the name of the Service.
        let port = json!(address.port());
        webhook["clientConfig"]["service"]["port"] = port;
        // The limits of a loaded test machine are not those of a cluster.
        webhook["timeoutSeconds"] = json!(30);
        webhook["failurePolicy"] = json!("Fail");
    }
    configuration
}

/// Creates something by kubectl and returns what the API server answers, with its warnings.
async fn create(cluster: &Cluster, arguments: &[&str], input: &Value) -> (Value, Vec<String>) {
    let arguments = [arguments, &["-o", "json", "-f", "-"]].concat();
    let output = cluster.control_plane.kubectl_with_input(&arguments, &input.to_string()).await.unwrap();
    assert!(output.success, "{input}: {}", output.stderr);
    let warnings = output.stderr.lines().filter_map(|line| line.strip_prefix("Warning: "));
    (serde_json::from_str(&output.stdout).unwrap(), warnings.map(str::to_owned).collect())
}

async fn make_namespace(cluster: &Cluster, name: &str, row: &Row) {
    let labels = row.namespace_labels();
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    create(cluster, &["apply", "--server-side", "--force-conflicts"], &namespace).await;
    // Pods need the namespace's account, which a controller creates.
    until("the account", async || {
        let get = ["-n", name, "get", "serviceaccount", "default"];
        let output = cluster.control_plane.kubectl(&get).await.unwrap();
        if output.success { Ok(()) } else { Err(output.stderr) }
    })
    .await;
}

/// A cluster whose API server asks a replica about pods.
async fn cluster() -> (Cluster, Replica, Rules) {
    let cluster = Cluster::start(PROGRAM).await;
    let address = free_address().unwrap();
    let replica = Replica::start_at(&cluster, address, &[&format!("--redirect-image={IMAGE}")]);
    replica.wait_ready().await;
    let elsewhere = json!({"spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": null, "clusterIPs": null}});
    let service = ["-n", SYSTEM, "patch", "service", "sourcepreserve-webhook", "--type=merge", "-p"];
    cluster.kubectl(&[&service[..], &[&elsewhere.to_string()]].concat()).await;
    until("the bundle", async || !cluster.bundle().await.is_empty()).await;
    let (created, _) = create(&cluster, &["create"], &object()).await;
    let created: IngressSourcePreserve = serde_json::from_value(created).unwrap();
    let configuration = asked(&created, &cluster.bundle().await, address);
    create(&cluster, &["create"], &configuration).await;
    (cluster, replica, Rules::new([&created], SYSTEM))
}

fn decide(rules: &Rules, namespace: &str, row: &Row, pod: &Value) -> Outcome {
    redirected(rules, Namespace { name: namespace, labels: &row.namespace_labels() }, pod, IMAGE).unwrap()
}

/// The init container that the second entry asks for.
fn ours(rules: &Rules, rows: &[Row]) -> Value {
    let row = rows.iter().find(|row| row.name == "REDIRECT needs no right").unwrap();
    decide(rules, "some", row, &row.pod(&Value::Null)).pod.unwrap()["spec"]["initContainers"][0].clone()
}

fn names(pod: &Value) -> Vec<&str> {
    pod["spec"]["initContainers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|init| init["name"].as_str().unwrap())
        .collect()
}

/// What each container may do, by name.
fn rights(pod: &Value) -> Vec<(&str, &Value)> {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let inits = pod["spec"]["initContainers"].as_array().into_iter().flatten();
    containers.chain(inits).map(|each| (each["name"].as_str().unwrap(), &each["securityContext"])).collect()
}

#[tokio::test]
async fn a_real_api_server_makes_every_pod_of_the_table_what_the_function_says() {
    let (cluster, replica, rules) = cluster().await;
    let rows = rows();
    let ours = ours(&rules, &rows);
    until("the API server asks the webhook", async || {
        make_namespace(&cluster, "probe", &rows[0]).await;
        let pod = rows[0].pod(&ours);
        let (created, _) = create(&cluster, &["-n", "probe", "create", "--dry-run=server"], &pod).await;
        names(&created) == ["pod-redirect"]
    })
    .await;
    let mut wrong = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let name = row.namespace_name.clone().unwrap_or_else(|| format!("row-{index}"));
        make_namespace(&cluster, &name, row).await;
        let pod = row.pod(&ours);
        let expected = decide(&rules, &name, row, &pod);
        let wanted = expected.pod.as_ref().unwrap_or(&pod);
        let (created, warnings) = create(&cluster, &["-n", &name, "create", "--dry-run=server"], &pod).await;
        // System namespaces and what no entry selects is not even asked about.
        if expected.word != row.expect || names(&created) != names(wanted) || rights_differ(&created, wanted)
        {
            wrong.push(format!("{}: {} instead of {wanted}", row.name, created["spec"]));
        }
        let ours = |pod: &Value| {
            let inits = pod["spec"]["initContainers"].as_array().cloned().unwrap_or_default();
            let mut ours = inits.into_iter().find(|init| init["name"] == "pod-redirect").unwrap_or_default();
            ["image", "args", "resources"].map(|field| or_empty(&ours[field].take()))
        };
        if ours(&created) != ours(wanted) {
            wrong.push(format!("{}: {:?} instead of {:?}", row.name, ours(&created), ours(wanted)));
        }
        let told: Vec<&String> =
            warnings.iter().filter(|warning| !warning.contains("violate PodSecurity")).collect();
        if told != expected.warnings.iter().collect::<Vec<_>>() {
            wrong.push(format!("{}: {told:?} instead of {:?}", row.name, expected.warnings));
        }
        if row.qos.as_deref().is_some_and(|qos| created["status"]["qosClass"] != qos) {
            wrong.push(format!("{}: {}", row.name, created["status"]));
        }
    }
    assert!(wrong.is_empty(), "of {} pods:\n{}\n{}", rows.len(), wrong.join("\n"), replica.log());
}

/// The API server fills in some empty objects.
fn or_empty(value: &Value) -> Value {
    if value.is_null() { json!({}) } else { value.clone() }
}

/// Whether a container may do something else than the pod as it should be says.
fn rights_differ(created: &Value, wanted: &Value) -> bool {
    let (created, wanted) = (rights(created), rights(wanted));
    let alike = |((a, found), (b, wanted)): (&(&str, &Value), &(&str, &Value))| {
        a == b && or_empty(found) == or_empty(wanted)
    };
    created.len() != wanted.len() || !created.iter().zip(&wanted).all(alike)
}

#[tokio::test]
async fn what_the_schema_cannot_express_is_refused_by_the_webhook_with_field_value_and_way_out() {
    let (cluster, replica, _) = cluster().await;
    let port = json!([{"op": "replace", "path": "/webhooks/0/clientConfig/service/port", "value": replica.address.port()}]);
    let patch = ["patch", "validatingwebhookconfiguration", "sourcepreserve.io", "--type=json", "-p"];
    cluster.kubectl(&[&patch[..], &[&port.to_string()]].concat()).await;
    let attempt = async |marks: Value| {
        let mut object = object();
        object["metadata"]["name"] = json!("bad");
        object["spec"]["services"] = json!([{"namespace": "default", "name": "other"}]);
        object["spec"]["sidecars"][0]["redirect"]["exempt"] = json!({"marks": marks});
        let create = ["create", "--dry-run=server", "-f", "-"];
        cluster.control_plane.kubectl_with_input(&create, &object.to_string()).await.unwrap()
    };
    for marks in [json!([16_777_216]), json!([16_777_217]), json!([1, 4_294_967_295_u32])] {
        until(&format!("{marks} is refused"), async || {
            let output = attempt(marks.clone()).await;
            let parts = ["spec.sidecars[0].redirect.exempt.marks", "/0xffffffff\"", "use another mark"];
            if parts.iter().all(|part| output.stderr.contains(part)) { Ok(()) } else { Err(output.stderr) }
        })
        .await;
    }
    assert!(attempt(json!([1])).await.success);
}
