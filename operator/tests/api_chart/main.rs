//! The Helm chart: it installs what kustomize installs, its values reach what they are for, and a release comes and goes on real API
//! servers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod equal;
#[path = "../common/helm.rs"]
mod helm;
mod release;
mod rendered;
mod servers;
mod values;
