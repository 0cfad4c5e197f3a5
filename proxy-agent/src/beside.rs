//! Mode Beside: the agent serves the preserved Services itself, in nftables tables of its own,
//! while the cluster's kube-proxy ignores them and is not touched.
//!
//! These modules decide and do no I/O: `known` (what the watches have told), `own_node`,
//! `preserved` (which Services the objects preserve), `serving` (what to program next) and
//! `committed` (what is programmed). The crate `isp-intake` converts Kubernetes objects into the
//! data plane's model. `watches` reads the API, `programmer` writes the kernel, `service_loop`
//! connects the two, `health_checks` answers load balancers, and `progress` tells the report. When
//! the agent ends, the tables stay.

mod committed;
mod health_checks;
mod known;
mod metrics;
mod own_node;
mod preserved;
mod programmer;
mod progress;
mod service_loop;
mod serving;
mod stale_flows;
mod watches;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use clap::{Args, ValueEnum};
use isp_client::ClientError;
use isp_dataplane::nft::Name;
use isp_kernel::{Kernel, KernelThread, ProbeError, SocketError, Stopped};
use isp_runtime::admin::AdminError;
use isp_runtime::program::{Program, ProgramError};
use isp_runtime::readiness::Pending;
use prometheus_client::registry::Registry;
use thiserror::Error;
use tokio::sync::watch;
use tracing::info;

use self::committed::Committed;
use self::health_checks::{Blocked, BlockedPorts};
use self::metrics::BesideMetrics;
use self::own_node::{TrafficArgs, own_node};
use self::programmer::Programmer;
use self::progress::BesideProgress;
use self::service_loop::ServiceLoop;
use self::serving::Scope;
use self::watches::Watches;
use crate::cleanup::{self, CleanupError};
use crate::node::{Node, NodeArgs, PULSE_TIMEOUT, SHUTDOWN_GRACE};

/// The settings of mode Beside.
#[derive(Debug, Args)]
pub struct BesideArgs {
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    traffic: TrafficArgs,
    /// Name of the nftables tables, one of each address family.
    #[arg(long, default_value = "ingress-source-preserve", value_parser = Name::parse)]
    table: Name,
    /// How far the chains are ahead of the standard priorities of NAT and filtering. kube-proxy's
    /// chains have these priorities.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(i32).range(1..=50))]
    ahead: i32,
    /// Own the tables, so that no other program can change or flush them while the agent runs.
    /// Needs Linux 6.9. nft before 1.1 cannot load a saved ruleset with such tables.
    #[arg(long)]
    own_tables: bool,
    /// Most clients that are remembered for session affinity, in each address family.
    #[arg(long, default_value_t = 262_144, value_parser = clap::value_parser!(u32).range(1..))]
    remembered_clients: u32,
    /// The Services to serve.
    #[arg(long, value_enum, default_value_t = ServeArg::Preserved)]
    serve: ServeArg,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ServeArg {
    /// The Services that IngressSourcePreserves preserve.
    Preserved,
    /// Every Service, in full. For comparisons on a node without kube-proxy.
    All,
}

/// Why mode Beside cannot run.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum BesideError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error("cannot talk to nftables: {0}")]
    Socket(#[from] SocketError),
    #[error(transparent)]
    Kernel(#[from] ProbeError),
    #[error("--own-tables needs Linux 6.9 or later, and this kernel is {release}: leave it out")]
    CannotOwn { release: String },
    #[error(transparent)]
    Stopped(#[from] Stopped),
    #[error(transparent)]
    Cleanup(#[from] CleanupError),
    #[error(transparent)]
    Program(#[from] ProgramError),
}

/// Runs until a signal arrives.
pub(crate) async fn run(arguments: BesideArgs) -> Result<(), BesideError> {
    let mut program = Program::start()?;
    let mut registry = Registry::default();
    let client = isp_client::connect().await?;
    let node = Node::new(arguments.node, client, &program, &mut registry);
    let tables_ready = program.readiness().register("kernel");
    let metrics = Arc::new(BesideMetrics::default());
    metrics.register(&mut registry);

    let table = arguments.table.clone();
    let programmer = Programmer::new(arguments.table, arguments.ahead, arguments.remembered_clients);
    let (mut kernel, kernel_changes) = KernelThread::start()?;
    let probed = programmer.empty_tables(&own_node(node.name(), None, &arguments.traffic));
    let found = kernel.run(move |kernel| kernel.probe(&probed)).await??;
    if arguments.own_tables {
        if !found.can_own {
            return Err(BesideError::CannotOwn { release: found.release });
        }
        kernel.run(Kernel::own_tables).await?;
    }
    info!(kernel = found.release, "the kernel accepts the rules");

    let shutdown = program.shutdown();
    let admin = tokio::select! {
        admin = node.open_admin() => admin?,
        () = shutdown.requested() => return Ok(program.finish(SHUTDOWN_GRACE).await?),
    };
    let (committed, commits) = watch::channel(Committed::default());
    let (blocking, blocked) = watch::channel(Blocked::new());
    let blocking = BlockedPorts { blocked: Arc::new(blocking), metrics: metrics.clone() };
    let node_is_missing = Arc::new(AtomicBool::new(false));
    let service_loop = ServiceLoop {
        view: node.view.clone(),
        scope: match arguments.serve {
            ServeArg::Preserved => Scope::Preserved,
            ServeArg::All => Scope::All,
        },
        node_name: node.name().to_owned(),
        traffic: arguments.traffic,
        watches: Watches::new(node.client.clone(), node.name().to_owned()),
        kernel,
        kernel_changes,
        programmer: Arc::new(Mutex::new(programmer)),
        committed,
        metrics,
        pulse: program.health().register("services", PULSE_TIMEOUT),
        node_is_missing: node_is_missing.clone(),
    };
    program.spawn_endless("services", service_loop.run());
    program.spawn_endless("health checks", health_checks::serve(commits.clone(), blocking));
    program.spawn_endless("kernel readiness", become_ready(commits.clone(), tables_ready));
    let (view, last) = (node.view.clone(), commits.clone());
    node.spawn(&mut program, admin, registry, BesideProgress { commits, blocked });
    program.finish(SHUTDOWN_GRACE).await?;
    // A Service without an object is left to the agent that comes next.
    let is_needed = match arguments.serve {
        ServeArg::Preserved => {
            view.current().is_none_or(|current| current.view.is_beside()) || last.borrow().number > 0
        }
        ServeArg::All => true,
    };
    if node_is_missing.load(Ordering::Relaxed) {
        info!("the node has left the cluster");
        cleanup::delete_tables(&table)?;
    } else if !is_needed {
        info!("no object has mode Beside");
        cleanup::delete_tables(&table)?;
    }
    Ok(())
}

/// Marks the kernel as ready after the first commit. It never becomes unready again: the rules
/// stay.
async fn become_ready(mut commits: watch::Receiver<Committed>, tables_ready: Pending) {
    let _ = commits.wait_for(|committed| committed.view.is_some()).await;
    drop(tables_ready);
    std::future::pending::<()>().await;
}
