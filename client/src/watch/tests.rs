use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::client::Body;
use tokio::time::timeout;

use super::*;

/// An API server that answers every request with this response.
fn server(code: u16, body: &'static str) -> (Client, Arc<AtomicU32>) {
    let asked = Arc::new(AtomicU32::new(0));
    let count = asked.clone();
    let service = tower::service_fn(move |_: http::Request<Body>| {
        count.fetch_add(1, Ordering::Relaxed);
        let answer = http::Response::builder().status(code).body(Body::from(body.as_bytes().to_vec()));
        async { Ok::<_, Infallible>(answer.unwrap()) }
    });
    (Client::new(service, "default"), asked)
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_is_tried_less_and_less_often_and_for_ever() {
    let (client, asked) = server(503, "{}");
    let all = events::<ConfigMap>(Api::all(client), watching());
    let count = all.for_each(|event| {
        assert!(matches!(event, Event::Init), "{event:?}");
        std::future::ready(())
    });
    timeout(Duration::from_mins(10), count).await.expect_err("it never gives up");
    let asked = asked.load(Ordering::Relaxed);
    // After five attempts, the interval is between 10 and 20 s.
    assert!((30..=70).contains(&asked), "{asked} attempts in ten minutes");
}

#[tokio::test(start_paused = true)]
async fn what_is_listed_is_told_whole() {
    let list = r#"{"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "a"}}]}"#;
    let (client, _) = server(200, list);
    let all = events::<ConfigMap>(Api::all(client), watching());
    let told: Vec<_> = all.take(3).collect().await;
    let [Event::Init, Event::InitApply(map), Event::InitDone] = &told[..] else { panic!("{told:?}") };
    assert_eq!(map.metadata.name.as_deref(), Some("a"));
}
