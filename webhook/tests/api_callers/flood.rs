//! A flood of reviews by anonymous callers: the API server gets only a few requests, and none that
//! it would reject.

use isp_testkit::until;
use isp_testkit::webhook::{Cluster, Replica};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use isp_lab::Request;
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::caller::{Caller, OBJECTS, PODS, object};

const CALLERS: usize = 32;
const CAMPAIGN: Duration = Duration::from_secs(5);
/// Reviews of each caller at least, also on a busy machine.
const REVIEWS: usize = 4;
/// Rounds a second at most.
const ROUNDS: usize = 4;
/// The number of namespaces in all reviews.
const NAMESPACES: usize = 48;

/// A campaign: the number of reviews that were sent and that were checked against the cluster, and
/// the seconds until the last was answered, rounded up.
struct Flood {
    sent: usize,
    compared: usize,
    seconds: usize,
}

/// Sends reviews for the duration of the campaign, or longer on a busy machine.
async fn flood(caller: &Caller, path: &str, review: impl Fn(usize, usize) -> Value) -> Flood {
    let began = Instant::now();
    let one = async |number: usize| {
        let (mut sent, mut compared) = (0, 0);
        while began.elapsed() < CAMPAIGN || sent < REVIEWS {
            let answer = caller.ask(path, &review(number, sent)).await.unwrap();
            assert_eq!(answer["allowed"], true);
            sent += 1;
            compared += usize::from(!answer["warnings"].to_string().contains("could not be compared"));
        }
        (sent, compared)
    };
    let counts = join_all((0..CALLERS).map(one)).await;
    let (sent, compared) =
        counts.into_iter().fold((0, 0), |(sent, compared), one| (sent + one.0, compared + one.1));
    // On a busy machine the last answers come late, and rounds go on until then.
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap() + 1;
    Flood { sent, compared, seconds }
}

fn lists(requests: &[Request], resource: &str) -> usize {
    requests.iter().filter(|request| request.verb == "list" && request.resource == resource).count()
}

#[tokio::test]
async fn callers_that_are_nobody_cost_the_api_server_a_few_lists_however_many_they_are() {
    let cluster = Cluster::start(PROGRAM).await;
    let replica = Replica::start(&cluster, &[]);
    replica.wait_ready().await;
    until("the bundle", async || !cluster.bundle().await.is_empty()).await;
    let nobody = Caller::new(replica.address, &cluster.bundle().await, None);
    let settled = cluster.control_plane.audit().unwrap();
    assert_eq!((lists(&settled, "nodes"), lists(&settled, "services")), (0, 0), "nothing is read ahead");

    // A single review is answered at once.
    let asked = Instant::now();
    let review = json!({"uid": "1", "operation": "CREATE", "object": object("one", &["default".to_owned()])});
    let answer = nobody.ask(OBJECTS, &review).await.unwrap();
    assert!(answer["warnings"].to_string().contains("matches no node"), "{answer}");
    println!("one review took {:?}", asked.elapsed());

    // Each with a different object, in its own namespaces.
    let Flood { sent, compared, seconds } = flood(&nobody, OBJECTS, |number, turn| {
        let namespace = format!("ns-{}", (number + turn) % NAMESPACES);
        let other = format!("ns-{}", (number + turn + 1) % NAMESPACES);
        json!({"uid": "1", "operation": "CREATE", "object": object(&format!("o-{number}"), &[namespace, other])})
    })
    .await;
    let after = cluster.control_plane.audit().unwrap();
    let (nodes, services) = (lists(&after, "nodes"), lists(&after, "services"));
    println!("{sent} reviews, {compared} compared: {nodes} lists of nodes, {services} of Services");
    // One round is in progress at the start and one at the end; the review before had its own.
    let rounds = seconds * ROUNDS + 2;
    assert!(sent >= CALLERS * REVIEWS, "{sent} are no flood");
    // How many wait no longer than the limit depends on the machine.
    assert!(compared > nodes * 2, "{compared} were compared, with {nodes} lists of nodes: they are shared");
    assert!(nodes <= rounds + 1, "{nodes} lists of nodes for {sent} reviews");
    assert!(services <= 64 * (seconds + 2), "{services} lists of Services for {sent} reviews: 64 a second");
    assert!(services < sent * 2, "they are shared");

    // Reviews that need nothing from the API server, with invalid namespaces, or with too many
    // namespaces.
    let strange: Vec<String> =
        ["..", "../secrets", "kube-system/secrets?x=", "%2e%2e"].map(str::to_owned).into();
    let many: Vec<String> = (0..1000).map(|number| format!("many-{number}")).collect();
    let same = object("same", &["default".to_owned()]);
    for (operation, object, old) in [
        ("UPDATE", same.clone(), same.clone()),
        ("DELETE", Value::Null, same),
        ("CREATE", object("many", &many), Value::Null),
    ] {
        let review = json!({"uid": "1", "operation": operation, "object": object, "oldObject": old});
        assert_eq!(nobody.ask(OBJECTS, &review).await.unwrap()["allowed"], true);
    }
    assert_eq!(cluster.control_plane.audit().unwrap(), after);
    let review = json!({"uid": "1", "operation": "CREATE", "object": object("strange", &strange)});
    assert_eq!(nobody.ask(OBJECTS, &review).await.unwrap()["allowed"], true);

    // Pods in namespaces that do not exist, while an object asks for sidecars.
    let asks = object("asks", &["default".to_owned()]).to_string();
    let made = cluster.control_plane.kubectl_with_input(&["create", "-f", "-"], &asks).await.unwrap();
    assert!(made.success, "{made:?}");
    let pod = |namespace: String| json!({"uid": "1", "operation": "CREATE", "namespace": namespace, "object": {"metadata": {}, "spec": {}}});
    let unknown = || replica.metric("isp_webhook_reviews_total{about=\"Pods\",outcome=\"UnknownNamespace\"}");
    until("the object is known", async || {
        nobody.ask(PODS, &pod("nowhere".to_owned())).await.unwrap();
        unknown().is_some_and(|count| count > 0.0)
    })
    .await;
    let before = cluster.control_plane.audit().unwrap();
    let Flood { sent, .. } =
        flood(&nobody, PODS, |number, turn| pod(format!("nowhere-{number}-{turn}"))).await;
    let after = cluster.control_plane.audit().unwrap();
    println!("{sent} reviews of pods in namespaces that are not there");
    assert_eq!(lists(&after, "namespaces"), lists(&before, "namespaces"));
    assert!(after.iter().all(|request| request.code != 403), "nothing was asked that it may not: {after:?}");
    assert!(replica.is_ready());
}
