//! CIDR ranges, such as `10.0.0.0/8`.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

#[cfg(test)]
mod tests;

const PRIVATE: &str = "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 169.254.0.0/16 127.0.0.0/8 \
                       fc00::/7 fe80::/10";

/// A CIDR range. A single address is a range, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range(IpNet);

/// The text is not a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotARange;

impl FromStr for Range {
    type Err = NotARange;

    fn from_str(text: &str) -> Result<Self, NotARange> {
        // The standard library parses the address: ipnet accepts 010.0.0.0, which Go rejects.
        let address = |text: &str| text.parse::<IpAddr>().map_err(|_| NotARange);
        let Some((text, prefix)) = text.split_once('/') else { return Ok(address(text)?.into()) };
        let range = IpNet::new(address(text)?, prefix.parse().map_err(|_| NotARange)?);
        range.map(|range| Self(range.trunc())).map_err(|_| NotARange)
    }
}

impl From<IpAddr> for Range {
    fn from(address: IpAddr) -> Self {
        Self(address.into())
    }
}

impl Range {
    /// Whether it contains the other.
    pub(crate) fn holds(self, other: Self) -> bool {
        self.0.contains(&other.0)
    }

    /// Whether it is every address of its family.
    pub(crate) fn is_everything(self) -> bool {
        self.0.prefix_len() == 0
    }

    pub(crate) fn is_v4(self) -> bool {
        self.0.addr().is_ipv4()
    }

    /// Whether it is within private address space.
    pub(crate) fn is_private(self) -> bool {
        let mut private = PRIVATE.split(' ').filter_map(|text| text.parse::<IpNet>().ok());
        private.any(|private| private.contains(&self.0))
    }

    /// Whether it is no larger than a usual subnet of machines.
    pub(crate) fn is_small(self) -> bool {
        self.0.prefix_len() >= if self.is_v4() { 24 } else { 64 }
    }
}

/// The texts that can be parsed.
pub(crate) fn readable<'a>(texts: impl IntoIterator<Item = &'a String>) -> Vec<Range> {
    texts.into_iter().filter_map(|text| text.trim().parse().ok()).collect()
}
