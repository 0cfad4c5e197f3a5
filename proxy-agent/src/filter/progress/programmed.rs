//! Whether the kernel has followed: kube-proxy says in its metrics when it last wrote rules, and when it last had a reason to.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::filter::session::Epoch;

const PATIENCE: Duration = Duration::from_secs(2);
const LARGEST_PAGE: usize = 4 * 1024 * 1024;
const WRITTEN: &str = "kubeproxy_sync_proxy_rules_last_timestamp_seconds";
const QUEUED: &str = "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds";

/// How long kube-proxy may take to queue what it has read, and to begin with what was queued while it wrote (`minSyncPeriod`, a
/// second unless set).
const TAKEN_UP: f64 = 2.0;

/// Looks at kube-proxy's metrics until its rules are as new as what it has read.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    /// The epoch that is looked for, and for each family the end of a sync that may have begun too early to know of it.
    looking: Option<(Epoch, Ends)>,
    followed: Option<Epoch>,
}

/// When a sync ended, by family.
type Ends = BTreeMap<String, f64>;

impl Follower {
    /// Whether the rules have followed the epoch that kube-proxy has had since then. None: it cannot be told.
    pub(crate) async fn look(
        &mut self,
        metrics: SocketAddr,
        had: Option<(Epoch, SystemTime)>,
    ) -> Option<bool> {
        let Some((epoch, since)) = had else { return Some(false) };
        if self.followed == Some(epoch) {
            return Some(true);
        }
        let page = timeout(PATIENCE, fetch(metrics)).await.ok()??;
        if self.looking.as_ref().is_none_or(|(looking, _)| *looking != epoch) {
            self.looking = Some((epoch, Ends::new()));
        }
        let (_, ends) = self.looking.as_mut()?;
        let followed = has_followed(&page, ends, seconds(since), seconds(SystemTime::now()))?;
        if followed {
            self.followed = Some(epoch);
        }
        Some(followed)
    }
}

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// In each family: a sync that began after the view was taken up has ended, or for a while none was needed. The metrics tell when
/// a sync ended, not when it began; but the second to end began after the first had.
fn has_followed(page: &str, ends: &mut Ends, since: f64, now: f64) -> Option<bool> {
    let (written, queued) = (values(page, WRITTEN), values(page, QUEUED));
    let mut followed = |(family, written): (&&str, &f64)| {
        let first = match ends.get(*family) {
            Some(first) => Some(*first),
            None if *written >= since + TAKEN_UP => ends.insert((*family).to_owned(), *written),
            None => None,
        };
        let again = first.is_some_and(|first| *written > first);
        let waits = queued.get(family).is_some_and(|queued| queued > written);
        again || (!waits && now - written.max(since) >= TAKEN_UP)
    };
    // Each family is looked at, for each has a first end to remember.
    let behind = written.iter().filter(|family| !followed(*family)).count();
    (!written.is_empty()).then_some(behind == 0)
}

/// The values of a metric by its labels.
fn values<'a>(page: &'a str, name: &str) -> BTreeMap<&'a str, f64> {
    let value = |line: &'a str| {
        let rest = line.strip_prefix(name)?;
        let (labels, value) = match rest.strip_prefix('{') {
            Some(labels) => labels.split_once('}')?,
            None => ("", rest),
        };
        // A name that only begins the same has no space here.
        Some((labels, value.strip_prefix(' ')?.split(' ').next()?.parse().ok()?))
    };
    page.lines().filter_map(value).collect()
}

/// Where kube-proxy may serve its metrics. By default it is the loopback of the family that it binds to, and which that is only its
/// configuration says: a cluster of IPv6 alone has `[::1]`.
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
    // A loopback refuses at once where nobody listens.
    let stream = TcpStream::connect(candidates(metrics).as_slice()).await.ok()?;
    let address = stream.peer_addr().ok()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    let drive = tokio::spawn(connection);
    let request = http::Request::get("/metrics")
        .header("host", address.to_string())
        .body(Empty::<Bytes>::new())
        .ok()?;
    let answer = sender.send_request(request).await.ok()?;
    let page = Limited::new(answer.into_body(), LARGEST_PAGE).collect().await.ok()?.to_bytes();
    drive.abort();
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
        // The view was read at 100; the pairs are when rules were last written and when that was last asked for.
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
            assert_eq!(has_followed(&page(v4, v6), &mut Ends::new(), 100., now), Some(followed), "{why}");
        }
        assert_eq!(has_followed("nothing 1\n", &mut Ends::new(), 0.0, 0.0), None);
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
        let mut ends = Ends::new();
        let mut looks =
            |v4, v6, now| has_followed(&page((v4, now), (v6, now)), &mut ends, 100., now) == Some(true);
        assert!(!looks(101., 101., 101.1), "kube-proxy may not have taken up what it read");
        assert!(!looks(102.5, 101., 102.6), "the first to end may have begun before");
        assert!(!looks(103.5, 102.6, 103.6), "the other family has its first");
        assert!(!looks(103.5, 102.6, 104.), "nothing new");
        assert!(looks(104.5, 103.6, 104.6), "each family has its second");
    }
}
