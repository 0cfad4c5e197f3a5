//! The declarations of sets and maps.

use crate::{
    layout,
    nft::{
        DataType,
        Field::{Daddr, Dport, L4Proto, Priority, Random, Saddr},
        Set,
    },
};

use super::Settings;

/// All sets that every table has.
pub(super) fn constant(settings: &Settings) -> Vec<Set> {
    let handle = || DataType::Values(vec![Priority]);
    let endpoint = || DataType::Values(vec![Daddr, Dport]);
    let plain = |name, key: &[_], data| Set {
        name,
        key: key.to_vec(),
        data,
        interval: false,
        dynamic: false,
        size: None,
    };
    let frontend = [Daddr, L4Proto, Dport];
    vec![
        plain(layout::CLUSTER_IPS, &frontend, handle()),
        plain(layout::EXTERNAL_IPS, &frontend, handle()),
        plain(layout::NODE_PORTS, &[L4Proto, Dport], handle()),
        plain(layout::NODE_ADDRESSES, &[Daddr], DataType::None),
        plain(layout::CLUSTER_ADDRESSES, &[Daddr], DataType::None),
        plain(layout::SIZES, &[Priority], handle()),
        plain(layout::COUNTS, &[Priority], DataType::Verdict),
        // The modulus only gives the field its type.
        plain(layout::ENDPOINTS, &[Priority, Random(2)], endpoint()),
        plain(layout::STICKY, &[Priority], DataType::None),
        Set {
            dynamic: true,
            size: Some(settings.remembered_clients),
            ..plain(layout::AFFINITY, &[Saddr, Priority], endpoint())
        },
        plain(layout::HAIRPIN, &[Priority, Saddr, Daddr, Dport], DataType::None),
        plain(layout::GUARDED, &frontend, DataType::None),
        Set { interval: true, ..plain(layout::ALLOWED, &[Daddr, L4Proto, Dport, Saddr], DataType::None) },
    ]
}

/// The set of endpoints whose clients are remembered for so many seconds.
pub(crate) fn remembered(timeout: u32) -> Set {
    Set {
        name: layout::remembered(timeout),
        key: vec![Priority, Daddr, Dport],
        data: DataType::None,
        interval: false,
        dynamic: false,
        size: None,
    }
}
