//! The project's release images on a lab's nodes.

use std::path::Path;

use isp_lab::{Lab, release};

/// The released programs.
pub const PROGRAMS: [&str; 3] = ["operator", "webhook", "proxy-agent"];

/// Loads the release images of the programs in the directory of `program`, with each of these tags.
pub async fn load(lab: &Lab, program: &Path, tags: &[&str]) {
    for name in PROGRAMS {
        for tag in tags {
            let archive = release::pack(&program.with_file_name(name), tag).unwrap();
            lab.load_image(&archive).await.unwrap();
        }
    }
}
