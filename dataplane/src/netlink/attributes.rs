//! Netlink attributes: a type, a length and a value, padded to 4 bytes, nested at will.
//!
//! netfilter writes its numbers in network byte order. Reading never panics: bytes that do not hold
//! together end the iteration with an error.

use std::ops::Range;

use thiserror::Error;

/// Bytes from the kernel that are not attributes, or not the expected ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Malformed {
    /// An attribute is longer than the bytes around it.
    #[error("the kernel's answer ends within attribute {kind}")]
    Truncated {
        /// The type of the attribute.
        kind: u16,
    },
    /// A value has another length than its type.
    #[error("attribute {kind} of the kernel's answer has {found} bytes instead of {expected}")]
    Length {
        /// The type of the attribute.
        kind: u16,
        /// The number of bytes of the value.
        found: usize,
        /// The number of bytes of such a value.
        expected: usize,
    },
    /// A name is not text.
    #[error("attribute {kind} of the kernel's answer is not UTF-8 text")]
    Text {
        /// The type of the attribute.
        kind: u16,
    },
    /// A required attribute is missing.
    #[error("the kernel's answer has no attribute {kind}")]
    Missing {
        /// The type of the attribute.
        kind: u16,
    },
    /// A message is longer than the bytes around it.
    #[error("the kernel's answer ends within a message")]
    Message,
}

/// Marks attributes whose value consists of attributes.
const NESTED: u16 = 1 << 15;
/// The lower bits of the type; the upper two are flags.
const KIND: u16 = 0x3fff;
const HEADER: usize = 4;

/// The length with padding.
pub(super) const fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// Appends attributes to a message.
pub(super) struct Writer<'a>(pub(super) &'a mut Vec<u8>);

impl Writer<'_> {
    pub(super) fn bytes(&mut self, kind: u16, value: &[u8]) {
        self.nest_plain(kind, |inner| inner.0.extend_from_slice(value));
    }

    /// Text is terminated by a zero byte.
    pub(super) fn text(&mut self, kind: u16, value: &str) {
        self.nest_plain(kind, |inner| {
            inner.0.extend_from_slice(value.as_bytes());
            inner.0.push(0);
        });
    }

    pub(super) fn byte(&mut self, kind: u16, value: u8) {
        self.bytes(kind, &[value]);
    }

    pub(super) fn be16(&mut self, kind: u16, value: u16) {
        self.bytes(kind, &value.to_be_bytes());
    }

    pub(super) fn be32(&mut self, kind: u16, value: u32) {
        self.bytes(kind, &value.to_be_bytes());
    }

    pub(super) fn be64(&mut self, kind: u16, value: u64) {
        self.bytes(kind, &value.to_be_bytes());
    }

    /// Routing has its numbers in the byte order of the machine.
    pub(super) fn host32(&mut self, kind: u16, value: u32) {
        self.bytes(kind, &value.to_ne_bytes());
    }

    /// An attribute that consists of those that the function writes.
    pub(super) fn nest(&mut self, kind: u16, write: impl FnOnce(&mut Writer<'_>)) {
        self.nest_plain(kind | NESTED, write);
    }

    /// Writes the value first and its length afterwards. Callers keep values below 64 kB: names are
    /// bounded, and lists of elements are split.
    pub(super) fn nest_plain(&mut self, kind: u16, write: impl FnOnce(&mut Writer<'_>)) {
        let start = self.0.len();
        self.0.extend_from_slice(&[0; HEADER]);
        write(self);
        let length = u16::try_from(self.0.len() - start).unwrap_or(u16::MAX);
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.0[start + 2..start + 4].copy_from_slice(&kind.to_ne_bytes());
        self.0.resize(aligned(self.0.len()), 0);
    }
}

/// An attribute that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// The type, without flags.
    pub kind: u16,
    /// The value, without padding.
    pub value: &'a [u8],
}

impl<'a> Attribute<'a> {
    /// A number of one byte.
    pub fn byte(self) -> Result<u8, Malformed> {
        self.number::<1>().map(|[byte]| byte)
    }

    /// A number in network byte order.
    pub fn be16(self) -> Result<u16, Malformed> {
        self.number().map(u16::from_be_bytes)
    }

    /// A number in network byte order.
    pub fn be32(self) -> Result<u32, Malformed> {
        self.number().map(u32::from_be_bytes)
    }

    /// A number in the byte order of the machine.
    pub fn host32(self) -> Result<u32, Malformed> {
        self.number().map(u32::from_ne_bytes)
    }

    /// A number in network byte order.
    pub fn be64(self) -> Result<u64, Malformed> {
        self.number().map(u64::from_be_bytes)
    }

    /// Text that a zero byte may end.
    pub fn text(self) -> Result<&'a str, Malformed> {
        let end = self.value.iter().position(|byte| *byte == 0).unwrap_or(self.value.len());
        str::from_utf8(&self.value[..end]).map_err(|_| Malformed::Text { kind: self.kind })
    }

    /// The attributes that the value consists of.
    pub fn nested(self) -> Attributes<'a> {
        Attributes(self.value)
    }

    fn number<const N: usize>(self) -> Result<[u8; N], Malformed> {
        self.value.try_into().map_err(|_| Malformed::Length {
            kind: self.kind,
            found: self.value.len(),
            expected: N,
        })
    }
}

/// Bytes that consist of attributes.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Attributes<'a> {
    /// The last attribute of a type: later ones override.
    pub fn find(self, kind: u16) -> Result<Option<Attribute<'a>>, Malformed> {
        let mut found = None;
        for attribute in self {
            let attribute = attribute?;
            if attribute.kind == kind {
                found = Some(attribute);
            }
        }
        Ok(found)
    }

    /// The attributes with their positions, headers included and padding not.
    pub(super) fn positions(self) -> impl Iterator<Item = Result<(Range<usize>, Attribute<'a>), Malformed>> {
        let total = self.0.len();
        let mut rest = self.into_iter();
        std::iter::from_fn(move || {
            let start = total - rest.0.len();
            let next = rest.next()?;
            Some(next.map(|attribute| (start..start + HEADER + attribute.value.len(), attribute)))
        })
    }

    /// The last attribute of a type, or an error.
    pub fn require(self, kind: u16) -> Result<Attribute<'a>, Malformed> {
        self.find(kind)?.ok_or(Malformed::Missing { kind })
    }
}

impl<'a> IntoIterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, Malformed>;
    type IntoIter = Walk<'a>;

    fn into_iter(self) -> Walk<'a> {
        Walk(self.0)
    }
}

/// Reads attributes one by one.
pub struct Walk<'a>(&'a [u8]);

impl<'a> Iterator for Walk<'a> {
    type Item = Result<Attribute<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let [l0, l1, k0, k1, ..] = *self.0 else {
            return None;
        };
        let kind = u16::from_ne_bytes([k0, k1]) & KIND;
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        if length < HEADER || length > self.0.len() {
            self.0 = &[];
            return Some(Err(Malformed::Truncated { kind }));
        }
        let value = &self.0[HEADER..length];
        self.0 = self.0.get(aligned(length)..).unwrap_or_default();
        Some(Ok(Attribute { kind, value }))
    }
}

#[cfg(test)]
mod tests;
