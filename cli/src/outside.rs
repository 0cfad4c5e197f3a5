//! What is between clients and the cluster. The API does not show it, so commands that only read
//! say so, and `probe` finds it out.

/// The hop that replaces an address before a node gets the packet.
pub(crate) const BEFORE_FIRST_NODE: &str = "NAT or a proxy before the first node";

/// What no object tells about the way from outside.
pub(crate) fn unseen() -> String {
    format!(
        "whether {BEFORE_FIRST_NODE} replaces the source IP is not visible in the cluster; `kubectl isp probe --from-here`, run on \
         a client's machine, shows it"
    )
}
