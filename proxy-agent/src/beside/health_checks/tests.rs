use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http_body_util::BodyExt;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

fn name() -> Arc<ServiceName> {
    Arc::new(ServiceName { namespace: "shop".to_owned(), name: "web".to_owned() })
}

fn blocked_ports() -> (BlockedPorts, watch::Receiver<Blocked>) {
    let (blocked, told) = watch::channel(Blocked::new());
    (BlockedPorts { blocked: Arc::new(blocked), metrics: Arc::default() }, told)
}

fn check(address: SocketAddr, local_endpoints: usize) -> HealthCheck {
    HealthCheck { port: address.port(), local_endpoints: [(address.ip(), local_endpoints)].into() }
}

#[tokio::test]
async fn a_node_serves_with_a_local_endpoint_and_programmed_rules_only() {
    for (local, healthy, status) in [(2, true, 200), (0, true, 503), (2, false, 503)] {
        let answer = answer(&name(), local, healthy);
        assert_eq!(answer.status().as_u16(), status);
        assert_eq!(answer.headers()[WEIGHT], local.to_string().as_str());
        let body: Value = serde_json::from_slice(&answer.collect().await.unwrap().to_bytes()).unwrap();
        let expected = json!({
            "service": {"namespace": "shop", "name": "web"},
            "localEndpoints": local, "serviceProxyHealthy": healthy,
        });
        assert_eq!(body, expected);
    }
}

async fn ask(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[tokio::test]
async fn a_port_that_somebody_holds_is_taken_when_it_is_free_and_given_back_with_the_service() {
    let held = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = held.local_addr().unwrap();
    let (committed, commits) = watch::channel(Committed::default());
    let (ports, mut blocked) = blocked_ports();
    let serving = tokio::spawn(serve(commits, ports));
    committed.send_modify(|now| drop(now.health_checks.insert(name(), check(address, 1))));
    let told =
        timeout(Duration::from_secs(20), blocked.wait_for(|blocked| blocked.contains(&(address, name()))));
    drop(told.await.unwrap().unwrap());
    drop(held);
    let answered = timeout(Duration::from_secs(20), async {
        loop {
            match ask(address).await {
                Ok(answer) if answer.starts_with("HTTP/1.1 200") => return,
                _ => sleep(AGAIN).await,
            }
        }
    });
    answered.await.unwrap();
    assert_eq!(*blocked.borrow(), Blocked::new());
    committed.send_modify(|now| now.health_checks.clear());
    let closed = timeout(Duration::from_secs(20), async {
        while ask(address).await.is_ok() {
            sleep(AGAIN).await;
        }
    });
    closed.await.unwrap();
    serving.abort();
}

#[tokio::test]
async fn a_port_that_somebody_holds_for_ever_is_reported_until_the_service_goes() {
    let held = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = held.local_addr().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let other = Arc::new(ServiceName { namespace: "shop".to_owned(), name: "other".to_owned() });
    let (committed, commits) = watch::channel(Committed::default());
    let (ports, mut blocked) = blocked_ports();
    let serving = tokio::spawn(serve(commits, ports));
    committed.send_modify(|now| {
        now.health_checks.insert(name(), check(address, 1));
        now.health_checks.insert(other, check(free, 1));
    });
    let answered = timeout(Duration::from_secs(20), async {
        while !ask(free).await.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")) {
            sleep(AGAIN).await;
        }
    });
    answered.await.unwrap();
    let told =
        timeout(Duration::from_secs(20), blocked.wait_for(|blocked| blocked.contains(&(address, name()))));
    drop(told.await.unwrap().unwrap());
    committed.send_modify(|now| {
        now.health_checks.remove(&name());
    });
    let told = timeout(Duration::from_secs(20), blocked.wait_for(Blocked::is_empty));
    drop(told.await.unwrap().unwrap());
    serving.abort();
}

/// A Service may have endpoints on this node in one family only.
#[tokio::test]
async fn each_family_tells_its_own_endpoints() {
    let (v4, v6) = (IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST));
    let port = isp_lab::free_address().unwrap().port();
    let both = HealthCheck { port, local_endpoints: [(v4, 2), (v6, 0)].into() };
    let (committed, commits) = watch::channel(Committed::default());
    let serving = tokio::spawn(serve(commits, blocked_ports().0));
    committed.send_modify(|now| drop(now.health_checks.insert(name(), both)));
    let answered = timeout(Duration::from_secs(20), async {
        for (ip, status) in [(v4, "HTTP/1.1 200"), (v6, "HTTP/1.1 503")] {
            let address = SocketAddr::new(ip, port);
            while !ask(address).await.is_ok_and(|answer| answer.starts_with(status)) {
                sleep(AGAIN).await;
            }
        }
    });
    answered.await.unwrap();
    serving.abort();
}
