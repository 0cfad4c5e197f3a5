//! SHA-256 digests in the OCI format, and a writer that hashes the bytes that pass through it.

use std::{
    fmt::{self, Write as _},
    io::{self, Write},
};

use sha2::{Digest as _, Sha256};

/// A digest, displayed as `sha256:` and 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Digest(String);

impl Digest {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self::finished(Sha256::new_with_prefix(bytes))
    }

    fn finished(hasher: Sha256) -> Self {
        let mut hex = String::with_capacity(64);
        for byte in hasher.finalize() {
            let _ = write!(hex, "{byte:02x}");
        }
        Self(hex)
    }

    /// The hexadecimal digits without the prefix.
    pub(crate) fn hex(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

/// A writer that passes bytes on, and counts and hashes them.
pub(super) struct Hashing<W> {
    inner: W,
    hasher: Sha256,
    length: u64,
}

impl<W: Write> Hashing<W> {
    pub(super) fn new(inner: W) -> Self {
        Self { inner, hasher: Sha256::new(), length: 0 }
    }

    /// The inner writer, the digest and the number of bytes.
    pub(super) fn finish(self) -> (W, Digest, u64) {
        (self.inner, Digest::finished(self.hasher), self.length)
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_ABC: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_digest_is_written_as_image_tools_expect_it() {
        assert_eq!(Digest::of(b"abc").to_string(), OF_ABC);
    }

    #[test]
    fn what_passes_in_pieces_has_the_digest_of_the_whole() {
        let mut passed = Vec::new();
        let mut hashing = Hashing::new(&mut passed);
        hashing.write_all(b"a").unwrap();
        hashing.write_all(b"bc").unwrap();
        let (_, digest, length) = hashing.finish();
        assert_eq!((digest.to_string().as_str(), length), (OF_ABC, 3));
        assert_eq!(passed, b"abc");
    }
}
