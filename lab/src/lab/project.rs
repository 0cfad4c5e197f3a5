//! Installs the project on a lab, as users do.

use std::path::Path;

use super::{Lab, LabError};
use crate::images;

/// The project's programs.
const PROGRAMS: [&str; 3] = ["operator", "webhook", "proxy-agent"];
const NAMESPACE: &str = "sourcepreserve-system";

impl Lab {
    /// Loads a program of this workspace on every node, as the image `lab.local/<its name>:1`.
    pub async fn load_program(&self, program: &Path) -> Result<(), LabError> {
        if !program.is_file() {
            return Err(LabError::NotBuilt(program.to_owned()));
        }
        self.load_image(&images::program(program)?).await
    }

    /// Installs an overlay with the programs in the directory of `program`, and waits until they
    /// run.
    pub async fn install_project(&self, program: &Path, overlay: &Path) -> Result<(), LabError> {
        for name in PROGRAMS {
            self.load_program(&program.with_file_name(name)).await?;
        }
        let overlay = overlay.display().to_string();
        self.kubectl(["apply", "--server-side", "-k", &overlay]).await?;
        for deployment in ["deployment/sourcepreserve-operator", "deployment/sourcepreserve-webhook"] {
            let wait = ["-n", NAMESPACE, "rollout", "status", deployment, "--timeout=180s"];
            self.kubectl(wait).await?;
        }
        Ok(())
    }
}
