//! The numbers of `linux/netfilter/nf_tables.h` and `nfnetlink.h` that this project uses.

/// Message types. The upper byte is the subsystem.
pub(super) mod message {
    const SUBSYSTEM: u16 = 10 << 8;

    pub(crate) const BATCH_BEGIN: u16 = 0x10;
    pub(crate) const BATCH_END: u16 = 0x11;
    /// The subsystem, in the message that begins a batch.
    pub(crate) const BATCH_RESOURCE: u16 = 10;

    pub(crate) const NEW_TABLE: u16 = SUBSYSTEM;
    pub(crate) const GET_TABLE: u16 = SUBSYSTEM + 1;
    pub(crate) const DELETE_TABLE: u16 = SUBSYSTEM + 2;
    pub(crate) const NEW_CHAIN: u16 = SUBSYSTEM + 3;
    pub(crate) const GET_CHAIN: u16 = SUBSYSTEM + 4;
    pub(crate) const DELETE_CHAIN: u16 = SUBSYSTEM + 5;
    pub(crate) const NEW_RULE: u16 = SUBSYSTEM + 6;
    pub(crate) const GET_RULE: u16 = SUBSYSTEM + 7;
    pub(crate) const DELETE_RULE: u16 = SUBSYSTEM + 8;
    pub(crate) const NEW_SET: u16 = SUBSYSTEM + 9;
    pub(crate) const GET_SET: u16 = SUBSYSTEM + 10;
    pub(crate) const DELETE_SET: u16 = SUBSYSTEM + 11;
    pub(crate) const NEW_ELEMENT: u16 = SUBSYSTEM + 12;
    pub(crate) const GET_ELEMENT: u16 = SUBSYSTEM + 13;
    pub(crate) const DELETE_ELEMENT: u16 = SUBSYSTEM + 14;
    pub(crate) const NEW_GENERATION: u16 = SUBSYSTEM + 15;
    pub(crate) const GET_GENERATION: u16 = SUBSYSTEM + 16;
}

pub(super) mod batch {
    pub(crate) const GENERATION: u16 = 1;
}

pub(super) mod generation {
    pub(crate) const ID: u16 = 1;
    pub(crate) const PROCESS: u16 = 2;
    pub(crate) const PROCESS_NAME: u16 = 3;
}

pub(super) mod table {
    pub(crate) const NAME: u16 = 1;
    pub(crate) const FLAGS: u16 = 2;
    pub(crate) const OWNER: u16 = 7;

    /// Only the socket that created the table may change it.
    pub(crate) const F_OWNER: u32 = 0x2;
    /// The table stays when its owner's socket closes.
    pub(crate) const F_PERSIST: u32 = 0x4;
}

pub(super) mod chain {
    pub(crate) const TABLE: u16 = 1;
    pub(crate) const NAME: u16 = 3;
    pub(crate) const HOOK: u16 = 4;
    pub(crate) const POLICY: u16 = 5;
    pub(crate) const TYPE: u16 = 7;
}

pub(super) mod hook {
    pub(crate) const NUMBER: u16 = 1;
    pub(crate) const PRIORITY: u16 = 2;
}

pub(super) mod rule {
    pub(crate) const TABLE: u16 = 1;
    pub(crate) const CHAIN: u16 = 2;
    pub(crate) const EXPRESSIONS: u16 = 4;
    pub(crate) const USER_DATA: u16 = 7;
}

pub(super) mod set {
    pub(crate) const TABLE: u16 = 1;
    pub(crate) const NAME: u16 = 2;
    pub(crate) const FLAGS: u16 = 3;
    pub(crate) const KEY_TYPE: u16 = 4;
    pub(crate) const KEY_LENGTH: u16 = 5;
    pub(crate) const DATA_TYPE: u16 = 6;
    pub(crate) const DATA_LENGTH: u16 = 7;
    pub(crate) const DESCRIPTION: u16 = 9;
    pub(crate) const ID: u16 = 10;
    pub(crate) const USER_DATA: u16 = 13;

    pub(crate) const F_INTERVAL: u32 = 0x4;
    pub(crate) const F_MAP: u32 = 0x8;
    pub(crate) const F_TIMEOUT: u32 = 0x10;
    pub(crate) const F_DYNAMIC: u32 = 0x20;
    pub(crate) const F_CONCATENATION: u32 = 0x80;

    /// The data type of a verdict map.
    pub(crate) const DATA_VERDICT: u32 = 0xffff_ff00;
}

pub(super) mod set_description {
    pub(crate) const SIZE: u16 = 1;
    pub(crate) const CONCATENATION: u16 = 2;
    pub(crate) const FIELD_LENGTH: u16 = 1;
}

pub(super) mod element_list {
    pub(crate) const TABLE: u16 = 1;
    pub(crate) const SET: u16 = 2;
    pub(crate) const ELEMENTS: u16 = 3;
}

pub(super) mod element {
    pub(crate) const KEY: u16 = 1;
    pub(crate) const DATA: u16 = 2;
    pub(crate) const FLAGS: u16 = 3;
    pub(crate) const KEY_END: u16 = 10;

    /// The element is the exclusive end of an interval.
    pub(crate) const F_INTERVAL_END: u32 = 0x1;
}

pub(super) mod list {
    pub(crate) const ELEMENT: u16 = 1;
}

pub(super) mod data {
    pub(crate) const VALUE: u16 = 1;
    pub(crate) const VERDICT: u16 = 2;
}

pub(super) mod verdict {
    pub(crate) const CODE: u16 = 1;
    pub(crate) const CHAIN: u16 = 2;

    pub(crate) const DROP: i32 = 0;
    pub(crate) const ACCEPT: i32 = 1;
    pub(crate) const JUMP: i32 = -3;
    pub(crate) const GOTO: i32 = -4;
    pub(crate) const RETURN: i32 = -5;
}

pub(super) mod expression {
    pub(crate) const NAME: u16 = 1;
    pub(crate) const DATA: u16 = 2;
}

pub(super) mod payload {
    pub(crate) const TO: u16 = 1;
    pub(crate) const BASE: u16 = 2;
    pub(crate) const OFFSET: u16 = 3;
    pub(crate) const LENGTH: u16 = 4;

    pub(crate) const NETWORK: u32 = 1;
    pub(crate) const TRANSPORT: u32 = 2;
}

pub(super) mod meta {
    pub(crate) const TO: u16 = 1;
    pub(crate) const KEY: u16 = 2;
    pub(crate) const FROM: u16 = 3;

    pub(crate) const PRIORITY: u32 = 2;
    pub(crate) const MARK: u32 = 3;
    pub(crate) const INPUT_NAME: u32 = 6;
    pub(crate) const OUTPUT_NAME: u32 = 7;
    pub(crate) const SOCKET_USER: u32 = 10;
    pub(crate) const SOCKET_GROUP: u32 = 11;
    pub(crate) const L4PROTO: u32 = 16;
    pub(crate) const NET_CLS: u32 = 23;
}

pub(super) mod conntrack {
    pub(crate) const TO: u16 = 1;
    pub(crate) const KEY: u16 = 2;
    pub(crate) const DIRECTION: u16 = 3;
    pub(crate) const FROM: u16 = 4;

    pub(crate) const STATE: u32 = 0;
    /// The direction of the packet.
    pub(crate) const PACKET_DIRECTION: u32 = 1;
    pub(crate) const STATUS: u32 = 2;
    pub(crate) const MARK: u32 = 3;
    pub(crate) const PROTO_DESTINATION: u32 = 12;
    pub(crate) const DESTINATION_IPV4: u32 = 20;
    pub(crate) const DESTINATION_IPV6: u32 = 22;
}

pub(super) mod fib {
    pub(crate) const TO: u16 = 1;
    pub(crate) const RESULT: u16 = 2;
    pub(crate) const FLAGS: u16 = 3;

    pub(crate) const RESULT_ADDRESS_TYPE: u32 = 3;
    pub(crate) const F_SOURCE: u32 = 0x1;
    pub(crate) const F_DESTINATION: u32 = 0x2;
}

pub(super) mod numgen {
    pub(crate) const TO: u16 = 1;
    pub(crate) const MODULUS: u16 = 2;
    pub(crate) const KIND: u16 = 3;
    pub(crate) const OFFSET: u16 = 4;

    pub(crate) const RANDOM: u32 = 1;
}

pub(super) mod lookup {
    pub(crate) const SET: u16 = 1;
    pub(crate) const FROM: u16 = 2;
    pub(crate) const TO: u16 = 3;
    pub(crate) const FLAGS: u16 = 5;

    pub(crate) const INVERTED: u32 = 0x1;
}

pub(super) mod compare {
    pub(crate) const FROM: u16 = 1;
    pub(crate) const OPERATION: u16 = 2;
    pub(crate) const DATA: u16 = 3;

    pub(crate) const EQUAL: u32 = 0;
    pub(crate) const NOT_EQUAL: u32 = 1;
}

pub(super) mod bitwise {
    pub(crate) const FROM: u16 = 1;
    pub(crate) const TO: u16 = 2;
    pub(crate) const LENGTH: u16 = 3;
    pub(crate) const MASK: u16 = 4;
    pub(crate) const XOR: u16 = 5;
    pub(crate) const OPERATION: u16 = 6;

    pub(crate) const MASK_XOR: u32 = 0;
}

pub(super) mod byteorder {
    pub(crate) const FROM: u16 = 1;
    pub(crate) const TO: u16 = 2;
    pub(crate) const LENGTH: u16 = 4;
}

pub(super) mod immediate {
    pub(crate) const TO: u16 = 1;
    pub(crate) const DATA: u16 = 2;
}

pub(super) mod nat {
    pub(crate) const KIND: u16 = 1;
    pub(crate) const FAMILY: u16 = 2;
    pub(crate) const ADDRESS: u16 = 3;
    pub(crate) const PORT: u16 = 5;
    pub(crate) const FLAGS: u16 = 7;

    pub(crate) const DESTINATION: u32 = 1;
    /// The flags that the kernel sets itself, for an address and a port.
    pub(crate) const DERIVED_FLAGS: u32 = 0x3;
    pub(crate) const FULLY_RANDOM: u32 = 0x10;
}

pub(super) mod masquerade {
    pub(crate) const FLAGS: u16 = 1;
}

pub(super) mod redirect {
    pub(crate) const PORT: u16 = 1;
    pub(crate) const FLAGS: u16 = 3;

    /// There is a port.
    pub(crate) const F_PORT: u32 = 0x2;
}

pub(super) mod tproxy {
    pub(crate) const FAMILY: u16 = 1;
    pub(crate) const ADDRESS: u16 = 2;
    pub(crate) const PORT: u16 = 3;
}

pub(super) mod socket {
    pub(crate) const KEY: u16 = 1;
    pub(crate) const TO: u16 = 2;
    pub(crate) const LEVEL: u16 = 3;

    pub(crate) const CGROUP: u32 = 3;
}

pub(super) mod reject {
    pub(crate) const KIND: u16 = 1;
    pub(crate) const CODE: u16 = 2;

    pub(crate) const ICMP_UNREACHABLE: u32 = 0;
    pub(crate) const TCP_RESET: u32 = 1;
}

pub(super) mod dynset {
    pub(crate) const SET: u16 = 1;
    pub(crate) const OPERATION: u16 = 3;
    pub(crate) const KEY: u16 = 4;
    pub(crate) const DATA: u16 = 5;
    pub(crate) const TIMEOUT: u16 = 6;

    pub(crate) const UPDATE: u32 = 1;
}

/// `NFPROTO_*`.
pub(super) mod family {
    pub(crate) const UNSPECIFIED: u8 = 0;
    pub(crate) const IPV4: u8 = 2;
    pub(crate) const IPV6: u8 = 10;
}
