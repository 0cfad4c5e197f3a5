//! `healthCheckNodePort`: both proxies give load balancers the same answers.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::addresses::{FAMILIES, PRIMARY, SECOND, outside};
use crate::clients::Client;
use crate::compare::Figures;
use crate::probe::run_in;
use crate::proxies::Served;
use crate::services::Generated;

const LIMIT: Duration = Duration::from_secs(10);
const WEIGHT: &str = "x-load-balancing-endpoint-weight";

/// What a load balancer learns.
#[derive(Debug, PartialEq)]
struct Answer {
    status: String,
    weight: Option<String>,
    body: Value,
}

/// Compares the answers in both worlds.
pub(crate) fn compare(served: &[Served; 2], services: &[Generated], figures: &mut Figures) {
    for (generated, port) in services.iter().filter_map(|each| Some((each, each.health_check_node_port?))) {
        for address in FAMILIES.iter().flat_map(|family| [PRIMARY, SECOND].map(|last| outside(*family, last)))
        {
            let address = SocketAddr::new(address, port);
            let [theirs, ours] = served.each_ref().map(|served| {
                run_in(served.world.netns.entrance(Client::Partner.place()).unwrap(), async move || {
                    ask(address).await
                })
            });
            figures.cases += 1;
            figures.connections += 2;
            if theirs != ours {
                figures.differences.push(format!(
                    "health check of {} at {address}:\n    kube-proxy: {theirs:?}\n    agent:      {ours:?}",
                    generated.name
                ));
            }
        }
    }
}

/// Asks once; the text of an error counts as the answer.
async fn ask(address: SocketAddr) -> Result<Answer, String> {
    let answer = async {
        let mut connection = TcpStream::connect(address).await?;
        connection.write_all(b"GET / HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n").await?;
        let mut text = String::new();
        connection.read_to_string(&mut text).await?;
        Ok::<_, std::io::Error>(text)
    };
    let text = timeout(LIMIT, answer)
        .await
        .map_err(|_| "no answer".to_owned())?
        .map_err(|error| error.to_string())?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or("no body")?;
    let weight = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case(WEIGHT).then(|| value.to_owned())
    });
    Ok(Answer {
        status: head.lines().next().unwrap_or_default().to_owned(),
        weight,
        body: serde_json::from_str(body).map_err(|error| format!("{error}: {body}"))?,
    })
}
