//! The expressions of a rule, as the kernel has them: small operations on sixteen 32-bit registers.
//!
//! [`super::lower`] makes them from statements. Writing and reading are inverse to each other, so a
//! rule of ours can be compared with the kernel's. Reading ignores attributes that it does not
//! know: newer kernels report more of them.

mod read;
pub(super) use read::read_all;
mod write;

/// One of the sixteen 32-bit registers. Longer values take consecutive ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Register(pub(super) u8);

impl Register {
    pub(super) const FIRST: Self = Self(0);

    /// The register after a value of so many bytes.
    pub(super) fn after(self, length: usize) -> Self {
        Self(self.0.saturating_add(u8::try_from(length.div_ceil(4)).unwrap_or(u8::MAX)))
    }

    /// The next register that starts a 128-bit one, or the register itself if it does.
    pub(super) fn aligned(self) -> Self {
        Self(self.0.next_multiple_of(4))
    }

    /// The kernel has two names for a register that starts a 128-bit one. It reports the long one.
    fn number(self) -> u32 {
        let word = u32::from(self.0);
        if word.is_multiple_of(4) { 1 + word / 4 } else { 8 + word }
    }

    /// `None` for the verdict's register and for numbers that do not exist.
    fn from_number(number: u32) -> Option<Self> {
        let word = match number {
            1..=4 => (number - 1) * 4,
            8..=23 => number - 8,
            _ => return None,
        };
        u8::try_from(word).ok().map(Self)
    }
}

/// The start of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// The network header.
    Network,
    /// The transport header.
    Transport,
}

/// The result of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// The key is in the set.
    Key,
    /// The key is not in the set.
    NoKey,
    /// The map's data goes to a register.
    Data(Register),
    /// The map's verdict applies.
    Verdict,
}

/// What happens to the packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// Drop it.
    Drop,
    /// Accept it.
    Accept,
    /// Leave the chain.
    Return,
    /// Go through a chain and come back.
    Jump(String),
    /// Go on in another chain.
    Goto(String),
    /// A verdict of a rule that is not ours.
    Other(i32),
}

/// How a comparison goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
}

/// One operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expression {
    /// Loads bytes of the packet.
    Payload {
        /// Counted from here.
        base: Base,
        /// The first byte.
        offset: u32,
        /// The number of bytes.
        length: u32,
        /// The destination.
        to: Register,
    },
    /// Loads packet metadata (`NFT_META_*`).
    Meta {
        /// The field.
        key: u32,
        /// The destination.
        to: Register,
    },
    /// Sets packet metadata.
    SetMeta {
        /// The field.
        key: u32,
        /// The value.
        from: Register,
    },
    /// Loads a field of the connection (`NFT_CT_*`).
    Conntrack {
        /// The field.
        key: u32,
        /// Which tuple, for fields of a tuple: 0 original, 1 reply.
        direction: Option<u8>,
        /// The destination.
        to: Register,
    },
    /// Sets a field of the connection.
    SetConntrack {
        /// The field.
        key: u32,
        /// The value.
        from: Register,
    },
    /// Loads the ancestor, at this level, of the control group (version 2) of the packet's socket.
    Cgroup {
        /// 1 for a child of the root.
        level: u32,
        /// The destination.
        to: Register,
    },
    /// Loads a result of a route lookup.
    Fib {
        /// `NFTA_FIB_F_*`.
        flags: u32,
        /// `NFT_FIB_RESULT_*`.
        result: u32,
        /// The destination.
        to: Register,
    },
    /// Loads a random number.
    Random {
        /// The numbers are below it.
        modulus: u32,
        /// The destination.
        to: Register,
    },
    /// Looks a key up.
    Lookup {
        /// The set.
        set: String,
        /// The key.
        from: Register,
        /// When the rule goes on, and with what.
        found: Found,
    },
    /// Ends the rule unless the comparison holds.
    Compare {
        /// The comparison.
        comparison: Comparison,
        /// The left side.
        from: Register,
        /// The right side.
        value: Vec<u8>,
    },
    /// `to = (from & mask) ^ xor`.
    Bitwise {
        /// The source.
        from: Register,
        /// The destination.
        to: Register,
        /// The mask, as long as the value.
        mask: Vec<u8>,
        /// The second operand.
        xor: Vec<u8>,
    },
    /// Loads a constant.
    Immediate {
        /// The destination.
        to: Register,
        /// The value.
        value: Vec<u8>,
    },
    /// Decides.
    Verdict(Decision),
    /// Rewrites the destination of the connection.
    DestinationNat {
        /// `NFPROTO_*` of the address.
        family: u32,
        /// The address.
        address: Register,
        /// The port, unless it stays.
        port: Option<Register>,
        /// `NF_NAT_RANGE_*`.
        flags: u32,
    },
    /// Rewrites the source of the connection to the address of the outgoing interface.
    Masquerade {
        /// `NF_NAT_RANGE_*`.
        flags: u32,
    },
    /// Rewrites the destination of the connection to a port of this machine.
    Redirect {
        /// The port.
        port: Register,
    },
    /// Hands the packet to a transparent socket.
    Tproxy {
        /// `NFPROTO_*`.
        family: u32,
        /// The port that the socket listens on.
        port: Register,
    },
    /// Answers with an error.
    Reject {
        /// `NFT_REJECT_*`.
        kind: u32,
        /// The ICMP code; unused for a TCP reset.
        code: u8,
    },
    /// Adds an element, or renews its timeout.
    Update {
        /// The set.
        set: String,
        /// The key.
        key: Register,
        /// The data.
        data: Option<Register>,
        /// The timeout in milliseconds; 0 for the set's own.
        timeout: u64,
    },
    /// An expression that rules of ours do not have.
    Foreign(String),
}

#[cfg(test)]
mod tests;
