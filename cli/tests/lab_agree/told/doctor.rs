use isp_testkit::until;
use serde_json::json;

use super::parsed;
use crate::world::World;

/// On the sound cluster, nothing is found, as soon as operator and agents have come to rest.
pub(crate) async fn expect_no_fault(world: &World) {
    until("doctor finds nothing", async || {
        let (told, fine) = parsed("doctor", &world.run(&["doctor", "-o", "json"]).await);
        if fine && told["findings"] == json!([]) { Ok(()) } else { Err(format!("{:#}", told["findings"])) }
    })
    .await;
}
