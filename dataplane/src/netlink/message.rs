//! Netlink messages: a header, the family, and attributes. A datagram holds several.

use super::attributes::{Attributes, Malformed, Writer, aligned};

/// The byte length of `nlmsghdr`.
pub(super) const HEADER: usize = 16;
/// The byte length of `nfgenmsg`, which follows it in messages of netfilter.
pub(super) const FAMILY_HEADER: usize = 4;

/// Flags of `nlmsghdr`.
pub(super) mod flag {
    pub(crate) const REQUEST: u16 = 0x1;
    pub(crate) const ACK: u16 = 0x4;
    pub(crate) const DUMP_INTERRUPTED: u16 = 0x10;
    pub(crate) const ACK_ATTRIBUTES: u16 = 0x200;
    pub(crate) const ACK_CAPPED: u16 = 0x100;
    pub(crate) const DUMP: u16 = 0x300;
    /// In a request that creates something.
    pub(crate) const REPLACE: u16 = 0x100;
    /// In a request that creates something: it must not exist.
    pub(crate) const EXCLUSIVE: u16 = 0x200;
    pub(crate) const CREATE: u16 = 0x400;
    pub(crate) const APPEND: u16 = 0x800;
}

/// The message types of netlink itself.
pub(super) mod control {
    pub(crate) const ERROR: u16 = 2;
    pub(crate) const DONE: u16 = 3;
    pub(crate) const OVERRUN: u16 = 4;
}

/// The first fields of a message of netfilter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) kind: u16,
    pub(super) flags: u16,
    pub(super) sequence: u32,
    /// `NFPROTO_*`.
    pub(super) family: u8,
    /// Means something in the messages that begin and end a batch only.
    pub(super) resource: u16,
}

/// Appends a message of netfilter.
pub(super) fn write(out: &mut Vec<u8>, head: Head, body: impl FnOnce(&mut Writer<'_>)) {
    let [high, low] = head.resource.to_be_bytes();
    write_with(out, head.kind, head.flags, head.sequence, &[head.family, 0, high, low], body);
}

/// Appends a message with the header of its subsystem.
pub(super) fn write_with(
    out: &mut Vec<u8>,
    kind: u16,
    flags: u16,
    sequence: u32,
    header: &[u8],
    body: impl FnOnce(&mut Writer<'_>),
) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&kind.to_ne_bytes());
    out.extend_from_slice(&flags.to_ne_bytes());
    out.extend_from_slice(&sequence.to_ne_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(header);
    body(&mut Writer(out));
    let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    out[start..start + 4].copy_from_slice(&length.to_ne_bytes());
}

/// A message of the kernel.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// The type, with the subsystem in its upper byte.
    pub kind: u16,
    pub(super) flags: u16,
    /// The sequence number of the request that it answers; 0 for a notification.
    pub sequence: u32,
    /// The port of the request that caused it.
    pub(super) port: u32,
    /// Whatever follows the header of netlink itself.
    pub body: &'a [u8],
}

impl<'a> Message<'a> {
    /// Appends the bytes of the message, so that [`Messages`] reads it again.
    pub fn append_to(self, out: &mut Vec<u8>) {
        write_with(out, self.kind, self.flags, self.sequence, self.body, |_| {});
        out.resize(aligned(out.len()), 0);
    }

    /// `NFPROTO_*` of a message of netfilter.
    pub fn family(self) -> Result<u8, Malformed> {
        self.body.first().copied().ok_or(Malformed::Message)
    }

    /// The attributes of a message of netfilter.
    pub fn attributes(self) -> Result<Attributes<'a>, Malformed> {
        self.body.get(FAMILY_HEADER..).map(Attributes).ok_or(Malformed::Message)
    }

    /// Whether the table changed while it was being dumped, so that the dump is no snapshot.
    pub fn is_interrupted(self) -> bool {
        self.flags & flag::DUMP_INTERRUPTED != 0
    }
}

/// The messages of a datagram.
#[derive(Debug, Clone)]
pub struct Messages<'a>(pub &'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let message = Self::first(self.0);
        let length = message.as_ref().map_or(usize::MAX, |message| aligned(HEADER + message.body.len()));
        self.0 = self.0.get(length..).unwrap_or_default();
        Some(message)
    }
}

impl<'a> Messages<'a> {
    fn first(bytes: &'a [u8]) -> Result<Message<'a>, Malformed> {
        let (header, _) = bytes.split_first_chunk::<HEADER>().ok_or(Malformed::Message)?;
        let [l0, l1, l2, l3, k0, k1, f0, f1, s0, s1, s2, s3, p0, p1, p2, p3] = *header;
        let length = usize::try_from(u32::from_ne_bytes([l0, l1, l2, l3])).map_err(|_| Malformed::Message)?;
        Ok(Message {
            kind: u16::from_ne_bytes([k0, k1]),
            flags: u16::from_ne_bytes([f0, f1]),
            sequence: u32::from_ne_bytes([s0, s1, s2, s3]),
            port: u32::from_ne_bytes([p0, p1, p2, p3]),
            body: bytes.get(HEADER..length).ok_or(Malformed::Message)?,
        })
    }
}
