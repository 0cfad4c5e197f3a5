use std::sync::Arc;

use http_body_util::Empty;
use tokio::sync::watch;

use super::*;

fn request(method: Method, path: &str, host: Option<&str>) -> Request<Empty<Bytes>> {
    let mut request = Request::new(Empty::new());
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap();
    if let Some(host) = host {
        request.headers_mut().insert(HOST, host.parse().unwrap());
    }
    request
}

#[test]
fn a_host_is_an_address_or_localhost() {
    for (host, taken) in [
        ("127.0.0.1:8090", true),
        ("127.0.0.1", true),
        ("localhost:8090", true),
        ("[::1]:8090", true),
        ("[::1]", true),
        ("attacker.example:8090", false),
        ("localhost.attacker.example", false),
        ("127.0.0.1.attacker.example:8090", false),
        ("", false),
    ] {
        assert_eq!(is_address(host), taken, "{host}");
    }
}

#[tokio::test]
async fn only_the_page_and_its_events_are_served_and_only_by_address() {
    let (_sender, shown) = watch::channel(Arc::new("the page".to_owned()));
    for (method, path, host, status) in [
        (Method::GET, "/", Some("127.0.0.1:8090"), 200),
        (Method::GET, "/events", Some("localhost:8090"), 200),
        (Method::GET, "/favicon.ico", Some("127.0.0.1:8090"), 404),
        (Method::POST, "/", Some("127.0.0.1:8090"), 405),
        (Method::GET, "/", Some("attacker.example"), 421),
        (Method::GET, "/", None, 421),
    ] {
        let answered = answer(request(method, path, host), shown.clone()).await.unwrap();
        assert_eq!(answered.status().as_u16(), status, "{path} {host:?}");
        assert_eq!(answered.headers()["cache-control"], "no-store");
    }
}

#[tokio::test]
async fn a_new_version_is_announced_once() {
    let (sender, shown) = watch::channel(Arc::new("first".to_owned()));
    let mut body =
        answer(request(Method::GET, "/events", Some("127.0.0.1")), shown).await.unwrap().into_body();
    let mut next = async || body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(next().await, ": open\n\n");
    sender.send_replace(Arc::new("second".to_owned()));
    assert_eq!(next().await, "data: changed\n\n");
    drop(sender);
    assert!(body.frame().await.is_none());
}
