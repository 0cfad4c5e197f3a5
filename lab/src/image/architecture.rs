//! Architectures in OCI terms.

use std::env::consts::ARCH;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::error::{Error, at};

/// The place of the field for the machine in the header of an ELF file, and its values.
const MACHINE: usize = 18;
const MACHINES: [([u8; 2], &str); 2] = [([0x3e, 0], "amd64"), ([0xb7, 0], "arm64")];

/// This machine's architecture.
pub(super) fn of_this_machine() -> &'static str {
    match ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The architecture that a program is built for.
pub(super) fn of(program: &Path) -> Result<&'static str, Error> {
    let mut header = [0; MACHINE + 2];
    File::open(program)
        .and_then(|mut file| file.read_exact(&mut header))
        .map_err(at("read the program", program))?;
    in_header(&header).ok_or_else(|| Error::Architecture { program: program.to_owned() })
}

fn in_header(header: &[u8; MACHINE + 2]) -> Option<&'static str> {
    let machine = header.strip_prefix(b"\x7fELF").map(|_| &header[MACHINE..])?;
    MACHINES.iter().find(|(value, _)| value == machine).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_names_its_architecture() {
        assert_eq!(of(&std::env::current_exe().unwrap()).unwrap(), of_this_machine());
        let mut header = [0; 20];
        assert_eq!(in_header(&header), None);
        header[..4].copy_from_slice(b"\x7fELF");
        assert_eq!(in_header(&header), None);
        header[MACHINE] = 0xb7;
        assert_eq!(in_header(&header), Some("arm64"));
    }
}
