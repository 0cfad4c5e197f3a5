//! Numbers of `linux/netfilter/nf_tables.h` that the decoder knows.

pub(super) const NEW_TABLE: u16 = 10 << 8;
pub(super) const NEW_CHAIN: u16 = NEW_TABLE + 3;
pub(super) const NEW_RULE: u16 = NEW_TABLE + 6;
pub(super) const NEW_SET: u16 = NEW_TABLE + 9;
pub(super) const NEW_ELEMENT: u16 = NEW_TABLE + 12;

pub(super) const INET: u8 = 1;
pub(super) const IPV4: u8 = 2;
pub(super) const IPV6: u8 = 10;

/// Fields of `meta`.
pub(super) mod meta {
    pub(crate) const MARK: u32 = 3;
    pub(crate) const INPUT: u32 = 4;
    pub(crate) const OUTPUT: u32 = 5;
    pub(crate) const INPUT_NAME: u32 = 6;
    pub(crate) const OUTPUT_NAME: u32 = 7;
    pub(crate) const USER: u32 = 10;
    pub(crate) const GROUP: u32 = 11;
    pub(crate) const TRACE: u32 = 12;
    pub(crate) const FAMILY: u32 = 15;
    pub(crate) const PROTOCOL: u32 = 16;
    pub(crate) const CGROUP: u32 = 23;
}

/// Fields of `ct`.
pub(super) mod conntrack {
    pub(crate) const STATE: u32 = 0;
    pub(crate) const DIRECTION: u32 = 1;
    pub(crate) const MARK: u32 = 3;
    pub(crate) const ZONE: u32 = 17;
}

/// Verdicts.
pub(super) mod verdict {
    pub(crate) const DROP: i32 = 0;
    pub(crate) const ACCEPT: i32 = 1;
    pub(crate) const CONTINUE: i32 = -1;
    pub(crate) const JUMP: i32 = -3;
    pub(crate) const GOTO: i32 = -4;
    pub(crate) const RETURN: i32 = -5;
}

/// Results of a route lookup, and the addresses that are looked up.
pub(super) mod fib {
    pub(crate) const TYPE: u32 = 3;
    pub(crate) const SOURCE: u32 = 1;
    pub(crate) const DESTINATION: u32 = 2;
    pub(crate) const EITHER: u32 = SOURCE | DESTINATION;
    pub(crate) const MARK: u32 = 4;
}
