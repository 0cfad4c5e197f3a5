//! Follows whether kube-proxy has written its rules to the kernel. kube-proxy's metrics say when it
//! last wrote rules, and when it last queued a change.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::node::view::Epoch;

const TIMEOUT: Duration = Duration::from_secs(2);
const LARGEST_PAGE: usize = 4 * 1024 * 1024;
const WRITTEN: &str = "kubeproxy_sync_proxy_rules_last_timestamp_seconds";
const QUEUED: &str = "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds";

/// How long kube-proxy may take, in seconds, to queue a change that it has read, and to begin with
/// a change that it queued during a sync (`minSyncPeriod`, one second by default).
const PICK_UP: f64 = 2.0;

/// Reads kube-proxy's metrics until its rules are as new as its view.
#[derive(Debug)]
pub(super) struct RulesFollower {
    metrics: SocketAddr,
    /// The epoch whose rules are awaited, and the end of its first sync in each IP family. That
    /// sync may have begun too early to contain the view.
    awaited: Option<(Epoch, FirstSyncs)>,
    programmed: Option<Epoch>,
}

/// The time at which a sync ended, by IP family.
type FirstSyncs = BTreeMap<String, f64>;

impl RulesFollower {
    pub(super) fn new(metrics: SocketAddr) -> Self {
        Self { metrics, awaited: None, programmed: None }
    }

    /// Says whether the rules contain the view of the epoch, which kube-proxy received at
    /// `synced_at`. Returns `None` if the metrics do not tell.
    pub(super) async fn follow(&mut self, epoch: Epoch, synced_at: Option<SystemTime>) -> Option<bool> {
        let Some(synced_at) = synced_at else { return Some(false) };
        if self.programmed == Some(epoch) {
            return Some(true);
        }
        let page = timeout(TIMEOUT, fetch(self.metrics)).await.ok()??;
        if self.awaited.as_ref().is_none_or(|(awaited, _)| *awaited != epoch) {
            self.awaited = Some((epoch, FirstSyncs::new()));
        }
        let (_, first_syncs) = self.awaited.as_mut()?;
        let programmed = is_programmed(&page, first_syncs, seconds(synced_at), seconds(SystemTime::now()))?;
        if programmed {
            self.programmed = Some(epoch);
        }
        Some(programmed)
    }
}

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Says whether, in each IP family, a sync that began after kube-proxy had picked up the view has
/// ended, or no sync was needed for a while. The metrics tell when a sync ended, not when it began;
/// but the second sync to end began after the first one had ended.
fn is_programmed(page: &str, first_syncs: &mut FirstSyncs, synced_at: f64, now: f64) -> Option<bool> {
    let (written, queued) = (values(page, WRITTEN), values(page, QUEUED));
    let mut programmed = |(family, written): (&&str, &f64)| {
        let first = match first_syncs.get(*family) {
            Some(first) => Some(*first),
            None if *written >= synced_at + PICK_UP => first_syncs.insert((*family).to_owned(), *written),
            None => None,
        };
        let second = first.is_some_and(|first| *written > first);
        let pending = queued.get(family).is_some_and(|queued| queued > written);
        second || (!pending && now - written.max(synced_at) >= PICK_UP)
    };
    // Checks every family, because each has a first sync to remember.
    let behind = written.iter().filter(|family| !programmed(*family)).count();
    (!written.is_empty()).then_some(behind == 0)
}

/// Returns the values of a metric by its labels.
fn values<'a>(page: &'a str, name: &str) -> BTreeMap<&'a str, f64> {
    let value = |line: &'a str| {
        let rest = line.strip_prefix(name)?;
        let (labels, value) = match rest.strip_prefix('{') {
            Some(labels) => labels.split_once('}')?,
            None => ("", rest),
        };
        // The space excludes longer names with the same beginning.
        Some((labels, value.strip_prefix(' ')?.split(' ').next()?.parse().ok()?))
    };
    page.lines().filter_map(value).collect()
}

/// Returns the addresses where kube-proxy may serve its metrics. By default it uses the loopback
/// address of the IP family that it binds to, which only its configuration names. An IPv6-only
/// cluster has `[::1]`.
fn candidates(metrics: SocketAddr) -> Vec<SocketAddr> {
    let other = match metrics.ip() {
        IpAddr::V4(Ipv4Addr::LOCALHOST) => Some(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V6(Ipv6Addr::LOCALHOST) => Some(Ipv4Addr::LOCALHOST.into()),
        _ => None,
    };
    let other = other.map(|loopback: IpAddr| SocketAddr::new(loopback, metrics.port()));
    [metrics].into_iter().chain(other).collect()
}

async fn fetch(metrics: SocketAddr) -> Option<String> {
    // A loopback address without a listener refuses at once.
    let stream = TcpStream::connect(candidates(metrics).as_slice()).await.ok()?;
    let address = stream.peer_addr().ok()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    let driver = tokio::spawn(connection);
    let request = http::Request::get("/metrics")
        .header("host", address.to_string())
        .body(Empty::<Bytes>::new())
        .ok()?;
    let response = sender.send_request(request).await.ok()?;
    let page = Limited::new(response.into_body(), LARGEST_PAGE).collect().await.ok()?.to_bytes();
    driver.abort();
    String::from_utf8(page.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn page(v4: (f64, f64), v6: (f64, f64)) -> String {
        [(WRITTEN, v4.0, v6.0), (QUEUED, v4.1, v6.1)]
            .map(|(name, v4, v6)| {
                format!("# TYPE {name} gauge\n{name}{{ip_family=\"IPv4\"}} {v4}\n{name}{{ip_family=\"IPv6\"}} {v6:e}\n{name}_other 9\n")
            })
            .concat()
    }

    #[test]
    fn rules_have_followed_when_nothing_is_left_to_write_and_that_has_been_so_for_a_while() {
        // kube-proxy read the view at 100. Each pair: rules last written, change last queued.
        for (v4, v6, now, followed, why) in [
            ((101., 100.), (50., 40.), 101., false, "both families may still find something to do"),
            ((101., 100.), (50., 40.), 102.5, false, "it was asked for in the middle of a sync, maybe"),
            (
                (101., 100.),
                (50., 40.),
                103.,
                true,
                "a second sync would have begun; the other family had nothing to do",
            ),
            ((99., 101.), (50., 40.), 110., false, "something waits to be written"),
            ((99., 98.), (50., 40.), 101., false, "it may still find something to do"),
            ((99., 98.), (50., 40.), 102., true, "there was nothing to do"),
        ] {
            assert_eq!(
                is_programmed(&page(v4, v6), &mut FirstSyncs::new(), 100., now),
                Some(followed),
                "{why}"
            );
        }
        assert_eq!(is_programmed("nothing 1\n", &mut FirstSyncs::new(), 0.0, 0.0), None);
    }

    #[tokio::test]
    async fn metrics_are_found_on_the_loopback_of_either_family() {
        for (told, serving) in [("127.0.0.1", "[::1]"), ("[::1]", "127.0.0.1"), ("127.0.0.1", "127.0.0.1")] {
            let listener = tokio::net::TcpListener::bind(format!("{serving}:0")).await.unwrap();
            let port = listener.local_addr().unwrap().port();
            let server = tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut asked = [0; 16];
                stream.read_exact(&mut asked).await.unwrap();
                let page = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nup";
                stream.write_all(page.as_bytes()).await.unwrap();
                stream
            });
            let page = fetch(format!("{told}:{port}").parse().unwrap()).await;
            assert_eq!(page.as_deref(), Some("up"), "told {told}, serving on {serving}");
            drop(server.await.unwrap());
        }
        let told: SocketAddr = "192.0.2.1:10249".parse().unwrap();
        assert_eq!(candidates(told), [told], "an address that somebody chose is the only one");
    }

    #[test]
    fn rules_have_followed_under_changes_that_never_end_once_a_second_sync_has_ended() {
        let mut ends = FirstSyncs::new();
        let mut looks =
            |v4, v6, now| is_programmed(&page((v4, now), (v6, now)), &mut ends, 100., now) == Some(true);
        assert!(!looks(101., 101., 101.1), "kube-proxy may not have taken up what it read");
        assert!(!looks(102.5, 101., 102.6), "the first to end may have begun before");
        assert!(!looks(103.5, 102.6, 103.6), "the other family has its first");
        assert!(!looks(103.5, 102.6, 104.), "nothing new");
        assert!(looks(104.5, 103.6, 104.6), "each family has its second");
    }
}
