//! A real Kubernetes cluster on one machine, without Docker and without images to pull: what the project is tried
//! and tested on.
//!
//! Three forms, from whole to small:
//!
//! - [`Lab`]: etcd, API server, controller-manager, scheduler, and nodes with containerd, kubelet and kube-proxy, each
//!   node in a network namespace of its own; two clients and a router outside; Istio when asked for. Needs root.
//! - [`ControlPlane`]: etcd, API server and controller-manager on loopback, nodes simulated by kwok. Needs nothing. A
//!   [`Program`] is one of ours that runs against it.
//! - [`NetNs`]: a few network namespaces joined by cables. Needs user namespaces, or root.
//!
//! [`docs`] hands tests the commands of the project's pages, to be run on any of them.
//!
//! A [`Vm`] stands on a lab's network as a node does, with a kernel of its own, for what this machine's kernel lacks.
//!
//! How a lab is built: `topology` gives out names and addresses, `network` says how they are laid, `components` and
//! `node` say which programs run with which settings: all pure. `provision` gets the programs, `images` and `store` the
//! images. `lab` writes all of it to a directory and starts `init`, which carries it out inside the lab.

mod addons;
mod audit;
mod command;
mod components;
mod control_plane;
mod credentials;
mod dirs;
pub mod docs;
mod image;
mod images;
pub mod init;
pub mod istio;
mod lab;
mod netns;
mod network;
mod node;
mod pki;
mod program;
pub mod provision;
pub mod release;
mod spec;
mod store;
pub mod topology;
mod vm;

pub use audit::Request;
pub use command::{CommandError, Output};
pub use control_plane::{ControlPlane, ControlPlaneError};
pub use image::Error as ImageError;
pub use images::{ECHO_IMAGE, echo_program, pack};
pub use lab::{
    Answer, Builder, EchoApp, Lab, LabError, Place, PlaceError, Protocol, ProxyMode, Seen, Shipped, down,
    list, log_path,
};
pub use netns::{End, NetNs, NetNsError};
pub use program::{Program, free_address, until};
pub use vm::{GuestError, Vm, VmBuilder, VmError, run_guest};
