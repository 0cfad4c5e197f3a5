//! Targets of iptables.

use super::super::bytes::Bytes;
use super::Extension;
use crate::rules::{Assign, MarkOf, Statement, Tproxy, Verdict};

/// `NF_NAT_RANGE_*`: the range has addresses, or ports.
const ADDRESSES: u32 = 1;
const PORTS: u32 = 2;

/// Decodes a target.
pub(in super::super) fn target(extension: &Extension<'_>) -> Vec<Statement> {
    let info = Bytes(extension.info);
    let known = match (extension.name, extension.revision) {
        // They watch, or change nothing that a redirect depends on.
        ("LOG" | "NFLOG" | "TRACE" | "AUDIT" | "TCPMSS" | "CHECKSUM" | "CT", _) => return Vec::new(),
        ("REDIRECT", 0) => {
            nat(info, extension.is_ipv6, false).map(|Nat { port, .. }| Statement::Redirect { port })
        }
        ("DNAT", 0..=2) => {
            let is_wide = extension.is_ipv6 || extension.revision > 0;
            nat(info, is_wide, !extension.is_ipv6)
                .map(|Nat { address, port }| Statement::DestinationNat { address, port })
        }
        ("SNAT" | "MASQUERADE", _) => Some(Statement::SourceNat),
        ("TPROXY", 0) => tproxy(info, info.be16(12)),
        ("TPROXY", 1) => tproxy(info, info.be16(24)),
        ("MARK", 2) => info
            .u32(0)
            .zip(info.u32(4))
            .map(|(value, mask)| Statement::Assign(Assign::mark(MarkOf::Packet, value, mask))),
        ("CONNMARK", 1 | 2) => connmark(extension.revision, info),
        ("REJECT", _) => Some(Statement::Verdict(Verdict::Drop)),
        _ => None,
    };
    known.map_or_else(|| extension.unknown(), |statement| vec![statement])
}

struct Nat {
    address: Option<std::net::IpAddr>,
    port: Option<u16>,
}

/// A range of addresses and ports, in the layout of IPv4 alone or the one of both families.
fn nat(info: Bytes<'_>, is_wide: bool, is_ipv4: bool) -> Option<Nat> {
    let (flags, address, port) = if is_wide {
        let address = if is_ipv4 { info.ipv4(4) } else { info.ipv6(4) };
        (info.u32(0)?, address, info.be16(36))
    } else {
        (info.u32(4)?, info.ipv4(8), info.be16(16))
    };
    Some(Nat {
        address: address.filter(|_| flags & ADDRESSES != 0),
        port: port.filter(|_| flags & PORTS != 0),
    })
}

fn tproxy(info: Bytes<'_>, port: Option<u16>) -> Option<Statement> {
    let (mask, value, port) = (info.u32(0)?, info.u32(4)?, port?);
    Some(Statement::Tproxy(Tproxy {
        port: (port != 0).then_some(port),
        mark: (mask != 0).then(|| Assign::mark(MarkOf::Packet, value, mask)),
        decides: true,
    }))
}

fn connmark(revision: u32, info: Bytes<'_>) -> Option<Statement> {
    const SET: u8 = 0;
    const SAVE: u8 = 1;
    const RESTORE: u8 = 2;
    let (mark, connection_mask, packet_mask) = (info.u32(0)?, info.u32(4)?, info.u32(8)?);
    // Revision 2 shifts marks, and has the number of bits before the mode.
    let (mode, is_shifted) = match revision {
        1 => (info.u8(12)?, false),
        _ => (info.u8(14)?, info.u8(13)? != 0),
    };
    let assign = match mode {
        _ if is_shifted => return None,
        SET => Assign::mark(MarkOf::Connection, mark, connection_mask),
        SAVE => Assign {
            target: MarkOf::Connection,
            keep: !connection_mask,
            source: Some((MarkOf::Packet, packet_mask)),
            value: 0,
        },
        RESTORE => Assign {
            target: MarkOf::Packet,
            keep: !packet_mask,
            source: Some((MarkOf::Connection, connection_mask)),
            value: 0,
        },
        _ => return None,
    };
    Some(Statement::Assign(assign))
}
