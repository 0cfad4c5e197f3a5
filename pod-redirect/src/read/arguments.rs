//! The options of `pod-redirect read`.

use std::net::IpAddr;
use std::path::PathBuf;

use thiserror::Error;

const POD_IP: &str = "--pod-ip=";
const DIRECTORY: &str = "--namespaces=";
/// Where container runtimes keep the network namespaces of pods.
const DEFAULT_DIRECTORY: &str = "/var/run/netns";

/// Why the options cannot be used.
#[derive(Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum ReadArgumentError {
    #[error("there is no option {0} of `read`: use --pod-ip=IP and --namespaces=DIRECTORY")]
    Unknown(String),
    #[error("--pod-ip={0}: this is no IP address")]
    NoAddress(String),
    #[error("`read` needs --pod-ip=IP, an IP address of the pod")]
    Missing,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arguments {
    pub(super) pod_ip: IpAddr,
    pub(super) directory: PathBuf,
}

impl Arguments {
    pub(super) fn parse(arguments: &[String]) -> Result<Self, ReadArgumentError> {
        let (mut pod_ip, mut directory) = (None, PathBuf::from(DEFAULT_DIRECTORY));
        for argument in arguments {
            if let Some(value) = argument.strip_prefix(POD_IP) {
                let parsed = value.parse().map_err(|_| ReadArgumentError::NoAddress(value.to_owned()))?;
                pod_ip = Some(parsed);
            } else if let Some(value) = argument.strip_prefix(DIRECTORY) {
                directory = value.into();
            } else {
                return Err(ReadArgumentError::Unknown(argument.clone()));
            }
        }
        Ok(Self { pod_ip: pod_ip.ok_or(ReadArgumentError::Missing)?, directory })
    }
}

#[cfg(test)]
mod tests;
