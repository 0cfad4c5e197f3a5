//! Answers of the lab's application, as they are seen from a place.

use isp_lab::{Answer, Lab, Place, Protocol};

use crate::wait::Patience;

/// Asks until the answer is as wanted, and returns it. kube-proxy and Envoy apply a change within
/// seconds, and later on a busy machine.
pub async fn until(
    lab: &Lab,
    what: &str,
    place: &Place,
    (protocol, target): (Protocol, &str),
    is_so: impl Fn(&Answer) -> bool,
) -> Answer {
    let what = format!("{what}: {protocol} from {place} to {target}");
    Patience::DEFAULT
        .until(&what, async || {
            let answer = lab.ask(place, protocol, target).await.unwrap();
            if is_so(&answer) { Ok(answer) } else { Err(answer) }
        })
        .await
}
