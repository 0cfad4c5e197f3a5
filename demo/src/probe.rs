//! Sends the requests of a table.

use std::time::Duration;

use futures_util::future::try_join_all;
use isp_lab::{Answer, Place, Protocol};
use tokio::time::{Instant, sleep};

use crate::story::StoryError;
use crate::table::{Addresses, Asker, Cell, Outcome, Seen, Stage, Table, Target, expected, questions};
use crate::world::{GUARDED, OPEN, World};

/// How long to retry: kube-proxy and Envoy need seconds to follow a change, and longer on a busy
/// machine.
const PATIENCE: Duration = Duration::from_secs(40);
const PAUSE: Duration = Duration::from_millis(500);

/// Waits until the external address is served, with requests from the router, which appear in no
/// table. A node without a rule for the address forwards the first packet, and its conntrack table
/// keeps the untranslated connection for two minutes. A client that sends too early and reuses the
/// port within that time gets no reply. If the address is never served, the tables show it.
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

/// Sends all requests, family by family. Retries unexpected results for a while, then records them.
pub(crate) async fn table(world: &World, stage: Stage) -> Result<Table, StoryError> {
    let mut cells = Vec::new();
    for addresses in &world.addresses {
        cells.extend(of_family(world, stage, addresses).await?);
    }
    Ok(Table { stage, cells })
}

async fn of_family(world: &World, stage: Stage, addresses: &Addresses) -> Result<Vec<Cell>, StoryError> {
    // The pod and the host reach the router with the same source IP, so requests whose packets are
    // counted run one at a time.
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

/// Requests the open path first, for the observed addresses; then the path that the policy guards.
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
    // The gateway adds the source IP it sees to X-Forwarded-For.
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
