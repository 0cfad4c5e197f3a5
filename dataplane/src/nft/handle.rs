use std::fmt;

/// A value of `meta priority`, the scratch register. `nft` writes it as a traffic control handle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(pub u32);

impl Handle {
    /// The value of a packet that no rule has touched.
    pub const NONE: Self = Self(0);
}

impl fmt::Display for Handle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => out.write_str("none"),
            u32::MAX => out.write_str("root"),
            handle => write!(out, "{:x}:{:x}", handle >> 16, handle & 0xffff),
        }
    }
}
