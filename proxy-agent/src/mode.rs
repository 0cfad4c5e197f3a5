//! The modes of the agent, as subcommands.

use clap::Subcommand;
use isp_runtime::program::{Program, ProgramError};
use thiserror::Error;

use crate::beside::{self, BesideArgs, BesideError};
use crate::cleanup::{self, CleanupArgs, CleanupError};
use crate::filter::{self, FilterArgs, FilterError};

/// A mode of the agent.
#[derive(Debug, Subcommand)]
pub enum Mode {
    /// Serve the node's stock kube-proxy as its API server, and narrow the Services that it sees.
    Filter(Box<FilterArgs>),
    /// Serve the preserved Services from nftables tables of the agent's own, beside kube-proxy.
    Beside(Box<BesideArgs>),
    /// Delete the nftables tables of mode Beside, and exit. An agent that still runs writes them
    /// again.
    Cleanup(CleanupArgs),
    /// Do nothing until a signal arrives. Pods that keep this image on a node run it.
    Hold,
}

/// Why the agent failed.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum AgentError {
    #[error(transparent)]
    Filter(#[from] FilterError),
    #[error(transparent)]
    Beside(#[from] BesideError),
    #[error(transparent)]
    Cleanup(#[from] CleanupError),
    #[error(transparent)]
    Program(#[from] ProgramError),
}

impl Mode {
    /// Runs until a signal arrives.
    pub async fn run(self) -> Result<(), AgentError> {
        match self {
            Self::Filter(arguments) => Ok(filter::run(*arguments).await?),
            Self::Beside(arguments) => Ok(beside::run(*arguments).await?),
            Self::Cleanup(arguments) => Ok(cleanup::run(&arguments)?),
            Self::Hold => Ok(hold().await?),
        }
    }
}

async fn hold() -> Result<(), ProgramError> {
    let program = Program::start()?;
    program.shutdown().requested().await;
    program.finish(crate::node::SHUTDOWN_GRACE).await
}
