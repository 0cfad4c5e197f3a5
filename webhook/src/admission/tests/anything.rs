//! Fuzzing: the handler answers every input or rejects it with a reason, and never fails.

use std::sync::LazyLock;

use axum::body::Body;
use http::{Request, Response};
use http_body_util::BodyExt;
use proptest::prelude::*;
use tokio::runtime::Runtime;
use tower::{ServiceExt, service_fn};

use super::*;

/// The handler of a webhook that knows one object and one namespace, and whose API server knows
/// nothing.
static HANDLER: LazyLock<(Runtime, Router)> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let inside = runtime.enter();
    let nobody = service_fn(async |_: Request<kube::client::Body>| {
        let empty = json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": []});
        Ok::<_, std::convert::Infallible>(Response::new(Body::from(empty.to_string())))
    });
    let cache = Cache::new("sourcepreserve-system".to_owned());
    let mut newer = fine();
    let redirect = json!({"inbound": {"method": "TPROXY", "port": 15006}, "outbound": {"port": 15001}, "exempt": {"uids": [1]}});
    let own = json!([{"namespaceSelector": {"matchLabels": {"proxy": "own"}}, "redirect": redirect}]);
    newer.spec.sidecars.extend(object("x", &json!([]), &own).spec.sidecars);
    cache.take_objects(&BTreeMap::from([("newer".to_owned(), newer)]));
    let shop = labels(&[("team", "shop"), ("istio-injection", "enabled")]);
    let own = labels(&[("proxy", "own")]);
    cache.take_namespaces(&BTreeMap::from([
        ("shop".to_owned(), Arc::new(shop)),
        ("own".to_owned(), Arc::new(own)),
    ]));
    // No pauses and no waiting, to allow many cases.
    let limits = Limits { rest: Duration::ZERO, ..inventory::LIMITS };
    let (admission, reader) = Admission::with_limits(
        Arc::new(cache),
        "redirect:1".to_owned(),
        Arc::default(),
        limits,
        Duration::ZERO,
    );
    runtime.spawn(reader.run(Client::new(nobody, "default")));
    let router = router(Arc::new(admission));
    drop(inside);
    (runtime, router)
});

fn ask(path: &str, body: Vec<u8>) -> (StatusCode, Vec<u8>) {
    let (runtime, router) = &*HANDLER;
    runtime.block_on(async {
        let request = Request::post(path).body(Body::from(body)).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        (status, response.into_body().collect().await.unwrap().to_bytes().to_vec())
    })
}

/// JSON that resembles a review, and sometimes is one.
fn reviews() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just("shop"),
        Just("CREATE"),
        Just("UPDATE"),
        Just("TPROXY"),
        Just("sidecar.istio.io/inject"),
        Just("true"),
        Just("")
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(4, 24, 4, |inner| {
        let key = prop_oneof![
            Just("metadata".to_owned()),
            Just("labels".to_owned()),
            Just("annotations".to_owned()),
            Just("spec".to_owned()),
            Just("hostNetwork".to_owned()),
            Just("initContainers".to_owned()),
            Just("securityContext".to_owned()),
            Just("name".to_owned()),
            ".{0,8}"
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    let field = |name: &'static str, usual: Value, value: BoxedStrategy<Value>| {
        prop_oneof![6 => Just(Some(usual)), 2 => value.prop_map(Some), 1 => Just(None)]
            .prop_map(move |value| (name, value))
    };
    let value = value.boxed();
    let usual = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": []}});
    let request = (
        field("uid", json!("1"), value.clone()),
        field("operation", json!("CREATE"), value.clone()),
        prop_oneof![
            field("namespace", json!("shop"), value.clone()),
            field("namespace", json!("own"), value.clone()),
        ],
        field("object", usual, value.clone()),
        field("oldObject", Value::Null, value.clone()),
        field("subResource", Value::Null, value),
    );
    (request, any::<prop::sample::Index>(), any::<u8>(), 0..4_u8).prop_map(
        |((a, b, c, d, e, f), at, byte, damage)| {
            let fields =
                [a, b, c, d, e, f].into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            let mut bytes = review(&Value::Object(fields.collect()));
            match damage {
                0 => bytes.truncate(at.index(bytes.len())),
                1 => {
                    let index = at.index(bytes.len());
                    bytes[index] = byte;
                }
                _ => {}
            }
            bytes
        },
    )
}

fn cases() -> u32 {
    std::env::var("ISP_REVIEW_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(3_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_review_of_a_pod_is_answered_with_yes_or_refused_with_a_reason(body in reviews()) {
        match ask("/mutate/pods", body) {
            (StatusCode::OK, answer) => {
                let answer: Value = serde_json::from_slice(&answer).unwrap();
                prop_assert_eq!(&answer["response"]["allowed"], &json!(true));
            }
            (status, reason) => {
                prop_assert_eq!(status, StatusCode::BAD_REQUEST);
                prop_assert!(!reason.is_empty());
            }
        }
    }

    #[test]
    fn any_review_of_an_object_is_answered_or_refused_with_a_reason(body in reviews()) {
        let (status, answer) = ask("/validate/ingresssourcepreserves", body);
        prop_assert!([StatusCode::OK, StatusCode::BAD_REQUEST].contains(&status), "{status}");
        prop_assert!(!answer.is_empty());
    }

    #[test]
    fn any_bytes_are_refused_with_a_reason(body in prop::collection::vec(any::<u8>(), 0..512)) {
        for path in ["/mutate/pods", "/validate/ingresssourcepreserves"] {
            let (status, reason) = ask(path, body.clone());
            prop_assert_eq!(status, StatusCode::BAD_REQUEST);
            prop_assert!(!reason.is_empty());
        }
    }
}
