use std::fmt;

/// A mark: `value` in the bits of `mask`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark {
    /// The bits.
    pub value: u32,
    /// The bits that count.
    pub mask: u32,
}

impl fmt::Display for Mark {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:#x}/{:#x}", self.value, self.mask)
    }
}

/// What has a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Marked {
    /// The packet: `meta mark`. Its first value is that of the socket.
    Packet,
    /// The connection: `ct mark`.
    Connection,
}

impl Marked {
    /// Returns the name in nftables.
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Packet => "meta mark",
            Self::Connection => "ct mark",
        }
    }
}
