//! Names and numbers that rules and elements share.
//!
//! Each port of a Service has an [`Identity`] in a family. The scratch register holds a [`Handle`]:
//! the identity, one bit that tells the local set from the cluster set, and in the upper bits,
//! while an endpoint is being chosen, the number of endpoints.
//!
//! ```text
//!  31        20 19 18                  0
//! ┌────────────┬──┬─────────────────────┐
//! │ count      │L │ identity            │     5 endpoints, local set, identity 2b: 58:2b
//! └────────────┴──┴─────────────────────┘
//! ```

use crate::nft::{Handle, Name};

/// ClusterIP, protocol, port → handle of the set that internal traffic uses.
pub const CLUSTER_IPS: Name = Name::constant("cluster-ips");
/// Load balancer or external IP, protocol, port → handle of the set that external traffic uses.
pub const EXTERNAL_IPS: Name = Name::constant("external-ips");
/// Protocol, NodePort → handle of the set that external traffic uses.
pub const NODE_PORTS: Name = Name::constant("node-ports");
/// Addresses of the node that accept NodePort traffic.
pub const NODE_ADDRESSES: Name = Name::constant("node-addresses");
/// All ClusterIPs, whatever the port.
pub const CLUSTER_ADDRESSES: Name = Name::constant("cluster-addresses");
/// Handle → handle with the number of endpoints. A set without endpoints has no element.
pub const SIZES: Name = Name::constant("sizes");
/// Number of endpoints → the chain that chooses among so many.
pub const COUNTS: Name = Name::constant("counts");
/// Handle, index → endpoint.
pub const ENDPOINTS: Name = Name::constant("endpoints");
/// Handles of ports with session affinity.
pub const STICKY: Name = Name::constant("sticky");
/// Client, handle → endpoint. Rules fill it; elements expire.
pub const AFFINITY: Name = Name::constant("affinity");
/// Handle, address, address, port: endpoints on this node that may reach themselves.
pub const HAIRPIN: Name = Name::constant("hairpin");
/// Load balancer IP, protocol, port with source ranges.
pub const GUARDED: Name = Name::constant("guarded");
/// The same with a range of allowed sources.
pub const ALLOWED: Name = Name::constant("allowed");

/// Returns the name of the set of endpoints whose clients are remembered for so many seconds.
pub fn remembered(timeout: u32) -> Name {
    Name::new(format!("remembered-{timeout}"))
}

/// Returns the timeout in the name of such a set.
pub fn remembered_timeout(set: &Name) -> Option<u32> {
    set.as_str().strip_prefix("remembered-")?.parse().ok()
}

/// Returns the name of the chain that chooses among so many endpoints.
pub fn choose_among(count: u16) -> Name {
    Name::new(format!("choose-{count}"))
}

/// The bit of a handle that is set for the local set.
pub const LOCAL: Handle = Handle(1 << 19);
/// The bits of a handle that name a set of endpoints.
pub const SET: Handle = Handle((1 << 20) - 1);
/// The bits of a handle that have the number of endpoints.
pub const COUNT: Handle = Handle(!SET.0);
/// The largest number of endpoints of a set. More are left out.
pub const MOST_ENDPOINTS: usize = 4095;

/// The number of one port of a Service in one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity(u32);

impl Identity {
    /// The smallest identity. Zero would be the handle of an untouched packet.
    pub const FIRST: Self = Self(1);
    /// The largest identity.
    pub const LAST: Self = Self(LOCAL.0 - 1);

    /// Returns the identity after this one; the first follows the last.
    #[must_use]
    pub fn next(self) -> Self {
        if self == Self::LAST { Self::FIRST } else { Self(self.0 + 1) }
    }

    /// Returns the identity in a handle, unless the handle names no port.
    pub fn of(handle: Handle) -> Option<Self> {
        match handle.0 & Self::LAST.0 {
            0 => None,
            identity => Some(Self(identity)),
        }
    }

    /// Returns the handle of the cluster set.
    pub fn cluster(self) -> Handle {
        Handle(self.0)
    }

    /// Returns the handle of the local set.
    pub fn local(self) -> Handle {
        Handle(self.0 | LOCAL.0)
    }
}

/// Returns a handle together with the number of endpoints.
pub fn sized(handle: Handle, count: u16) -> Handle {
    Handle(u32::from(count) << 20 | handle.0 & SET.0)
}

/// Returns the number of endpoints in a handle.
pub fn count(handle: Handle) -> u16 {
    // Twelve bits are left.
    u16::try_from(handle.0 >> SET.0.count_ones()).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_keeps_count_set_and_identity_apart() {
        let handle = sized(Identity::LAST.local(), 4095);
        assert_eq!(handle, Handle(u32::MAX));
        assert_eq!((count(handle), Identity::of(handle)), (4095, Some(Identity::LAST)));
        assert_eq!(Handle(handle.0 & SET.0), Identity::LAST.local());
        assert_eq!(count(Identity::LAST.local()), 0);
        assert_eq!(Identity::of(sized(Handle::NONE, 7)), None);
        assert_eq!(Identity::LAST.next(), Identity::FIRST);
    }
}
