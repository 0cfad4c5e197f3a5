//! Images of proxies that pods run in a container of their own. The programs are this machine's,
//! with the paths and users of their projects' images, so manifests work with both. Labs start
//! without them; [`Lab::load_image`](crate::Lab::load_image) imports them.

use std::path::PathBuf;

use crate::image::Image;
use crate::images::pack_image;
use crate::lab::LabError;
use crate::provision::{self, Progress};

/// Packs nginx under this name. Installs it on first use.
pub fn nginx(reference: &str, progress: Progress) -> Result<PathBuf, LabError> {
    let image = Image::new(reference)
        .program(provision::proxy("nginx", progress)?, "/usr/sbin/nginx")?
        .passwd_entry("nginx", 101, 101, "/nonexistent")
        .entrypoint(["/usr/sbin/nginx"]);
    pack_image(&image)
}

/// Packs HAProxy under this name. Installs it on first use.
pub fn haproxy(reference: &str, progress: Progress) -> Result<PathBuf, LabError> {
    let image = Image::new(reference)
        .program(provision::proxy("haproxy", progress)?, "/usr/local/sbin/haproxy")?
        .passwd_entry("haproxy", 99, 99, "/var/lib/haproxy")
        .user("haproxy")
        .entrypoint(["/usr/local/sbin/haproxy"]);
    pack_image(&image)
}

/// Packs Envoy under this name. Downloads it on first use.
pub fn envoy(reference: &str, progress: Progress) -> Result<PathBuf, LabError> {
    let image = Image::new(reference)
        .program(provision::envoy(progress)?, "/usr/local/bin/envoy")?
        .entrypoint(["/usr/local/bin/envoy"]);
    pack_image(&image)
}
