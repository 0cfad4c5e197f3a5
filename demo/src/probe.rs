//! Asking, cell by cell.

use std::time::Duration;

use futures_util::future::try_join_all;
use isp_lab::{Answer, Place, Protocol};
use tokio::time::{Instant, sleep};

use crate::story::StoryError;
use crate::table::{Addresses, Asker, Cell, Outcome, Seen, Stage, Table, Target, expected, questions};
use crate::world::{GUARDED, OPEN, World};

/// kube-proxy and Envoy follow a change within seconds; on a busy machine it takes longer.
const PATIENCE: Duration = Duration::from_secs(40);
const PAUSE: Duration = Duration::from_millis(500);

/// Waits until the external address is served, by asking from where nobody counts. A node that does not serve it yet takes the first packet
/// of a connection for one to be passed on, and for two minutes all that look the same: a client that has asked too early and by
/// chance uses the same port again finds nobody. If it never comes, the tables tell.
pub(crate) async fn wait_until_served(world: &World) -> Result<(), StoryError> {
    let deadline = Instant::now() + PATIENCE;
    for addresses in &world.addresses {
        let question = format!("{}{OPEN}", addresses.target(Target::ExternalAddress));
        while world.lab.ask(&Place::Router, Protocol::Http, &question).await?.peer().is_none()
            && Instant::now() < deadline
        {
            sleep(PAUSE).await;
        }
    }
    Ok(())
}

/// Asks everything, family by family. What is not as expected is asked again for a while, and then told as it is.
pub(crate) async fn table(world: &World, stage: Stage) -> Result<Table, StoryError> {
    let mut cells = Vec::new();
    for addresses in &world.addresses {
        cells.extend(of_family(world, stage, addresses).await?);
    }
    Ok(Table { stage, cells })
}

async fn of_family(world: &World, stage: Stage, addresses: &Addresses) -> Result<Vec<Cell>, StoryError> {
    // Pod and host elsewhere come to the router with the same address, so the packets of one at a time are counted.
    let (alone, together): (Vec<_>, Vec<_>) =
        questions().partition(|(asker, target)| is_counted(*asker, *target));
    let together = together.into_iter().map(|question| cell(world, stage, addresses, question));
    let mut cells = try_join_all(together).await?;
    for question in alone {
        cells.push(cell(world, stage, addresses, question).await?);
    }
    let place = |cell: &Cell| questions().position(|question| question == (cell.from, cell.to));
    cells.sort_by_key(place);
    Ok(cells)
}

fn is_counted(asker: Asker, target: Target) -> bool {
    target == Target::ExternalAddress && !asker.is_outside()
}

async fn cell(
    world: &World,
    stage: Stage,
    addresses: &Addresses,
    (asker, target): (Asker, Target),
) -> Result<Cell, StoryError> {
    let want = expected(stage, asker, target, addresses);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let outcome = ask(world, asker, target, addresses).await?;
        if outcome.is_like(&want) || Instant::now() > deadline {
            return Ok(Cell::new(stage, asker, target, addresses, outcome));
        }
        sleep(PAUSE).await;
    }
}

/// First what everybody may ask, to see what is seen; then what the policy guards.
async fn ask(
    world: &World,
    asker: Asker,
    target: Target,
    addresses: &Addresses,
) -> Result<Outcome, StoryError> {
    let address = addresses.target(target);
    let place = World::place(asker);
    let question =
        async |path: &str| world.lab.ask(&place, Protocol::Http, &format!("{address}{path}")).await;
    let counted = is_counted(asker, target);
    let before = if counted { world.packets_at_the_router().await? } else { 0 };
    let open = question(OPEN).await?;
    let through_router = if counted { Some(world.packets_at_the_router().await? > before) } else { None };
    let application = match &open {
        Answer::Seen(seen) => seen.peer_ip,
        Answer::Silent(why) => return Ok(Outcome::Silent(why.clone())),
    };
    if !world.has_mesh() {
        return Ok(Outcome::Seen(Seen { gateway: None, application, status: 200, through_router }));
    }
    // The gateway writes down whom it sees.
    let gateway = open.forwarded_for();
    let status = match question(GUARDED).await? {
        Answer::Seen(_) => 200,
        Answer::Silent(why) => match why.strip_prefix("status ").and_then(|status| status.parse().ok()) {
            Some(status) => status,
            None => return Ok(Outcome::Silent(why)),
        },
    };
    Ok(Outcome::Seen(Seen { gateway, application, status, through_router }))
}
