//! CIDR ranges, such as `10.0.0.0/8`.

use std::net::IpAddr;
use std::str::FromStr;

#[cfg(test)]
mod tests;

/// A CIDR range. A single address is a range, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// As 128 bits. An IPv4 address has the top 32.
    bits: u128,
    prefix: u8,
    v4: bool,
}

/// The text is not a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotARange;

impl FromStr for Range {
    type Err = NotARange;

    fn from_str(text: &str) -> Result<Self, NotARange> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let own = Self::from(address.parse::<IpAddr>().map_err(|_| NotARange)?);
        let Some(prefix) = prefix else { return Ok(own) };
        let prefix: u8 = prefix.parse().map_err(|_| NotARange)?;
        if prefix > own.prefix {
            return Err(NotARange);
        }
        Ok(Self { bits: own.bits & mask(prefix), prefix, v4: own.v4 })
    }
}

impl From<IpAddr> for Range {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self { bits: u128::from(address.to_bits()) << 96, prefix: 32, v4: true },
            IpAddr::V6(address) => Self { bits: address.to_bits(), prefix: 128, v4: false },
        }
    }
}

fn mask(prefix: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0)
}

impl Range {
    /// Whether it contains the other.
    pub(crate) fn holds(self, other: Self) -> bool {
        self.v4 == other.v4 && self.prefix <= other.prefix && other.bits & mask(self.prefix) == self.bits
    }

    /// Whether it is every address of its family.
    pub(crate) fn is_everything(self) -> bool {
        self.prefix == 0
    }

    pub(crate) fn is_v4(self) -> bool {
        self.v4
    }

    /// Whether it is within private address space.
    pub(crate) fn is_private(self) -> bool {
        const PRIVATE: [&str; 8] = [
            "10.0.0.0/8",
            "172.16.0.0/12",
            "192.168.0.0/16",
            "100.64.0.0/10",
            "169.254.0.0/16",
            "127.0.0.0/8",
            "fc00::/7",
            "fe80::/10",
        ];
        PRIVATE.iter().filter_map(|text| text.parse::<Self>().ok()).any(|private| private.holds(self))
    }

    /// Whether it is no larger than a usual subnet of machines.
    pub(crate) fn is_small(self) -> bool {
        self.prefix >= if self.v4 { 24 } else { 64 }
    }
}

/// The texts that can be parsed.
pub(crate) fn readable<'a>(texts: impl IntoIterator<Item = &'a String>) -> Vec<Range> {
    texts.into_iter().filter_map(|text| text.trim().parse().ok()).collect()
}
