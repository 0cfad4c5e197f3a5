//! Whether the kernel has followed: kube-proxy says in its metrics when it last wrote rules, and when it last had a reason to.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::session::Epoch;

const PATIENCE: Duration = Duration::from_secs(2);
const LARGEST_PAGE: usize = 4 * 1024 * 1024;
const WRITTEN: &str = "kubeproxy_sync_proxy_rules_last_timestamp_seconds";
const QUEUED: &str = "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds";

/// How long kube-proxy may take to see that there is nothing to do.
const NOTHING_TO_DO: f64 = 2.0;

/// Looks at kube-proxy's metrics until its rules are as new as what it has read.
#[derive(Debug, Default)]
pub(super) struct Follower {
    followed: Option<Epoch>,
}

impl Follower {
    /// Whether the rules have followed the epoch that kube-proxy has had since then. None: it cannot be told.
    pub(super) async fn look(
        &mut self,
        metrics: SocketAddr,
        had: Option<(Epoch, SystemTime)>,
    ) -> Option<bool> {
        let Some((epoch, since)) = had else { return Some(false) };
        if self.followed == Some(epoch) {
            return Some(true);
        }
        let page = timeout(PATIENCE, fetch(metrics)).await.ok()??;
        let followed = has_followed(&page, seconds(since), seconds(SystemTime::now()))?;
        if followed {
            self.followed = Some(epoch);
        }
        Some(followed)
    }
}

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// In each family: rules written after the view was read, with nothing left to write; or, for a while, no reason to write any.
fn has_followed(page: &str, since: f64, now: f64) -> Option<bool> {
    let (written, queued) = (values(page, WRITTEN), values(page, QUEUED));
    let followed = |(family, written): (&&str, &f64)| {
        let waits = queued.get(family).is_some_and(|queued| queued > written);
        !waits && (*written >= since || now - since >= NOTHING_TO_DO)
    };
    (!written.is_empty()).then(|| written.iter().all(followed))
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

async fn fetch(address: SocketAddr) -> Option<String> {
    let stream = TcpStream::connect(address).await.ok()?;
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
    use super::*;

    #[test]
    fn rules_have_followed_when_each_family_was_written_after_the_view_was_read_or_had_nothing_to_do() {
        let page = |v4: (u32, u32), v6: (u32, u32)| {
            [(WRITTEN, v4.0, v6.0), (QUEUED, v4.1, v6.1)]
                .map(|(name, v4, v6)| {
                    format!("# TYPE {name} gauge\n{name}{{ip_family=\"IPv4\"}} {v4}\n{name}{{ip_family=\"IPv6\"}} {v6}e+00\n{name}_other 9\n")
                })
                .concat()
        };
        // The view was read at 100; the pairs are when rules were last written and when that was last asked for.
        for (v4, v6, now, followed, why) in [
            ((101, 100), (50, 40), 101.0, false, "the other family may still find something to do"),
            ((101, 100), (50, 40), 102.0, true, "the other family had nothing to do"),
            ((99, 101), (50, 40), 110.0, false, "something waits to be written"),
            ((99, 98), (50, 40), 101.0, false, "it may still find something to do"),
            ((99, 98), (50, 40), 103.0, true, "there was nothing to do"),
        ] {
            assert_eq!(has_followed(&page(v4, v6), 100.0, now), Some(followed), "{why}");
        }
        assert_eq!(has_followed("nothing 1\n", 0.0, 0.0), None);
    }
}
