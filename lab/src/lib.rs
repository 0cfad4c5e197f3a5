//! A real Kubernetes cluster on one machine, without Docker and without pulling images. The project
//! is tested on it.
//!
//! It comes in three sizes:
//!
//! - [`Lab`]: etcd, API server, controller-manager, scheduler, and nodes with containerd, kubelet
//!   and kube-proxy. Each node has its own network namespace. Two clients and a router are outside
//!   the cluster. Istio is optional. Needs root.
//! - [`ControlPlane`]: etcd, API server and controller-manager on loopback; kwok simulates nodes.
//!   Needs no privileges.
//! - [`NetNs`]: a few network namespaces joined by veth pairs. Needs user namespaces, or root.
//!
//! [`docs`] extracts the commands of the project's documentation, so that tests can run them.
//!
//! A [`Vm`] joins a lab's network like a node, but with its own kernel, for features that the
//! host's kernel lacks.
//!
//! How a lab is built: `topology` assigns names and addresses, `network` generates the network
//! setup, `components` and `node` generate the command lines and config files. These four are pure.
//! `provision` builds or installs the programs; `images` and `store` prepare the images. `lab`
//! writes everything to a directory and starts `init`, which runs it inside the lab's namespaces.

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
mod kube_proxy_state;
mod lab;
mod netns;
mod network;
mod node;
mod pki;
mod ports;
pub mod provision;
pub mod proxies;
pub mod release;
mod spec;
mod store;
pub mod topology;
mod vm;

pub use audit::Request;
pub use command::{CommandError, Output};
pub use control_plane::{ControlPlane, ControlPlaneError, StoredObject};
pub use image::Error as ImageError;
pub use images::{ECHO_IMAGE, echo_program, pack};
pub use kube_proxy_state::KubeProxyState;
pub use lab::{
    Answer, Builder, EchoApp, Lab, LabError, Place, PlaceError, Protocol, ProxyMode, Seen, Shipped, down,
    list, log_path,
};
pub use netns::{End, Entrance, NetNs, NetNsError};
pub use ports::free_address;
pub use vm::{GuestError, Vm, VmBuilder, VmError, run_guest};
