//! Decompresses a response piece by piece. The output of one call is bounded for any input.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;
use hyper::body::{Buf, Bytes};

/// Decompresses one body. The caller takes all output before it puts in more.
pub(super) struct Gunzip {
    decoder: MultiGzDecoder<Vec<u8>>,
    input: Bytes,
}

impl Default for Gunzip {
    fn default() -> Self {
        Self { decoder: MultiGzDecoder::new(Vec::new()), input: Bytes::new() }
    }
}

impl Gunzip {
    pub(super) fn put(&mut self, data: Bytes) {
        self.input = data;
    }

    /// Returns the next bytes, or `None` when all input is decompressed.
    pub(super) fn take(&mut self) -> io::Result<Option<Bytes>> {
        while !self.input.is_empty() {
            let taken = self.decoder.write(&self.input)?;
            self.input.advance(taken);
            if self.input.is_empty() {
                self.decoder.flush()?;
            }
            if !self.decoder.get_ref().is_empty() {
                return Ok(Some(std::mem::take(self.decoder.get_mut()).into()));
            }
        }
        Ok(None)
    }

    /// Checks that the body may end here: its checksums match.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.decoder.try_finish()
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    fn pack(data: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn unpack(packed: &[u8], size: usize) -> io::Result<(Vec<u8>, usize)> {
        let (mut gunzip, mut out, mut largest) = (Gunzip::default(), Vec::new(), 0);
        for piece in packed.chunks(size) {
            gunzip.put(Bytes::copy_from_slice(piece));
            while let Some(bytes) = gunzip.take()? {
                largest = largest.max(bytes.len());
                out.extend_from_slice(&bytes);
            }
        }
        gunzip.finish()?;
        Ok((out, largest))
    }

    proptest! {
        #[test]
        fn what_was_packed_comes_out_however_it_is_split(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..4000), 1..4),
            size in 1_usize..5000,
        ) {
            // Each event of a watch is compressed by itself.
            let packed: Vec<u8> = parts.iter().flat_map(|part| pack(part)).collect();
            prop_assert_eq!(unpack(&packed, size).unwrap().0, parts.concat());
        }
    }

    #[test]
    fn a_small_piece_that_unpacks_to_much_comes_out_in_pieces() {
        let much = vec![0; 50 << 20];
        let (out, largest) = unpack(&pack(&much), usize::MAX).unwrap();
        assert!(out == much);
        assert!(largest <= 256 << 10, "{largest}");
    }

    #[test]
    fn what_is_cut_or_changed_is_noticed() {
        let packed = pack(&[7; 1000]);
        assert!(unpack(&packed[..packed.len() - 3], 100).is_err());
        let mut changed = packed.clone();
        let last = changed.len() - 5;
        changed[last] ^= 1;
        assert!(unpack(&changed, 100).is_err());
        assert!(unpack(b"{\"kind\":\"ServiceList\"}", 100).is_err());
    }
}
