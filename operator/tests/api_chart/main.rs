//! The Helm chart: it installs the same as kustomize, its values take effect, and a release is
//! installed and uninstalled on real API servers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod equal;
mod helm;
mod release;
mod rendered;
mod servers;
mod values;
