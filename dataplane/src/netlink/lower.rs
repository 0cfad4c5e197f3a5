//! Statements as expressions, in the way in which `nft` translates them, so that `nft` can list
//! them.

use std::net::IpAddr;

use super::expression::{Base, Comparison, Decision, Expression, Found, Register};
use super::field::{length, load, load_all};
use super::nf_tables::{conntrack, family, fib, meta, nat, reject};
use crate::nft::{
    Family, Field, Handle, InterfacePattern, Lookup, Mark, Marked, Match, NewPriority, Owner, Protocol, Rule,
    Statement, Verdict,
};

/// The register of the left side of everything.
const HERE: Register = Register::FIRST;

/// `ct state new`.
const STATE_NEW: u32 = 0x8;
/// `ct status dnat`.
const STATUS_DNAT: u32 = 0x20;
/// `fib … type local`.
const TYPE_LOCAL: u32 = 2;
/// `ct direction reply`.
const REPLY: u8 = 1;
/// The flags in the header of TCP.
const TCP_FLAGS: u32 = 13;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
/// The length of the name of an interface, in the kernel.
const INTERFACE_NAME: usize = 16;

/// Codes of `reject`.
const PORT_UNREACHABLE_V4: u8 = 3;
const PORT_UNREACHABLE_V6: u8 = 4;

/// The expressions of a rule.
pub(super) fn rule(rule: &Rule, family: Family) -> Vec<Expression> {
    let mut lowering = Lowering { family, out: Vec::new() };
    for statement in &rule.statements {
        lowering.statement(statement);
    }
    lowering.out
}

struct Lowering {
    family: Family,
    out: Vec<Expression>,
}

impl Lowering {
    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Match(test) => self.test(test),
            Statement::InSet { lookup, negated } => {
                self.lookup(lookup, if *negated { Found::NoKey } else { Found::Key });
            }
            Statement::SetPriority(value) => self.set_priority(value),
            Statement::PriorityVerdict { mask, map } => {
                self.masked_priority(*mask, 0);
                self.out.push(Expression::Lookup {
                    set: map.as_str().to_owned(),
                    from: HERE,
                    found: Found::Verdict,
                });
            }
            Statement::Dnat(lookup) => {
                self.lookup(lookup, Found::Data(HERE));
                self.out.push(Expression::DestinationNat {
                    family: u32::from(protocol_family(self.family)),
                    address: HERE,
                    port: Some(HERE.after(length(&[Field::Daddr], self.family))),
                    flags: 0,
                });
            }
            Statement::Update { lookup, data, timeout } => self.update(lookup, data, *timeout),
            Statement::Masquerade => self.out.push(Expression::Masquerade { flags: nat::FULLY_RANDOM }),
            Statement::Reject => {
                let code = match self.family {
                    Family::Ip => PORT_UNREACHABLE_V4,
                    Family::Ip6 => PORT_UNREACHABLE_V6,
                };
                self.out.push(Expression::Reject { kind: reject::ICMP_UNREACHABLE, code });
            }
            Statement::SetMark { of, mark } => self.set_mark(*of, *mark),
            Statement::Tproxy(port) => {
                self.out.push(Expression::Immediate { to: HERE, value: port.to_be_bytes().to_vec() });
                let family = u32::from(protocol_family(self.family));
                self.out.push(Expression::Tproxy { family, port: HERE });
            }
            Statement::Redirect(port) => {
                self.out.push(Expression::Immediate { to: HERE, value: port.to_be_bytes().to_vec() });
                self.out.push(Expression::Redirect { port: HERE });
            }
            Statement::Verdict(verdict) => self.out.push(Expression::Verdict(verdict.into())),
        }
    }

    fn test(&mut self, test: &Match) {
        match test {
            Match::Protocol(protocol) => self.protocol(*protocol, false),
            Match::OtherProtocol(protocol) => self.protocol(*protocol, true),
            Match::Port(port) => {
                self.out.push(load(Field::Dport, self.family, HERE));
                self.compare(false, port.to_be_bytes().to_vec());
            }
            Match::Syn => {
                self.protocol(Protocol::Tcp, false);
                let (base, offset, length) = (Base::Transport, TCP_FLAGS, 1);
                self.out.push(Expression::Payload { base, offset, length, to: HERE });
                let (mask, xor) = (vec![SYN | ACK], vec![0]);
                self.out.push(Expression::Bitwise { from: HERE, to: HERE, mask, xor });
                self.compare(false, vec![SYN]);
            }
            Match::Source { prefix, negated } => self.source(prefix.network(), prefix.prefix_len(), *negated),
            Match::Interface { pattern, negated } => {
                self.out.push(Expression::Meta { key: meta::INPUT_NAME, to: HERE });
                let value = match pattern {
                    InterfacePattern::Name(name) => interface_name(name),
                    InterfacePattern::Prefix(prefix) => prefix.clone().into_bytes(),
                };
                self.compare(*negated, value);
            }
            Match::OutputInterface(name) => {
                self.out.push(Expression::Meta { key: meta::OUTPUT_NAME, to: HERE });
                self.compare(false, interface_name(name));
            }
            Match::SourceIsLocal => self.is_local(fib::F_SOURCE, false),
            Match::SourceIsForeign => self.is_local(fib::F_SOURCE, true),
            Match::DestinationIsLocal => self.is_local(fib::F_DESTINATION, false),
            Match::DestinationIsForeign => self.is_local(fib::F_DESTINATION, true),
            Match::PriorityBits { mask, set } => {
                self.masked_priority(*mask, 0);
                self.compare(*set, vec![0; 4]);
            }
            Match::NewConnection => self.connection_bits(conntrack::STATE, STATE_NEW),
            Match::Redirected => self.connection_bits(conntrack::STATUS, STATUS_DNAT),
            Match::Reply => {
                let key = conntrack::PACKET_DIRECTION;
                self.out.push(Expression::Conntrack { key, direction: None, to: HERE });
                self.compare(false, vec![REPLY]);
            }
            Match::Marked { of, mark } => {
                self.load_mark(*of);
                if mark.mask != u32::MAX {
                    self.mask(mark.mask, 0);
                }
                self.compare(false, mark.value.to_ne_bytes().to_vec());
            }
            Match::Owner(owner) => self.owner(owner),
        }
    }

    fn protocol(&mut self, protocol: Protocol, negated: bool) {
        self.out.push(load(Field::L4Proto, self.family, HERE));
        self.compare(negated, vec![protocol.number()]);
    }

    /// Whether an address is one of this machine.
    fn is_local(&mut self, flags: u32, negated: bool) {
        self.out.push(Expression::Fib { flags, result: fib::RESULT_ADDRESS_TYPE, to: HERE });
        self.compare(negated, TYPE_LOCAL.to_ne_bytes().to_vec());
    }

    fn owner(&mut self, owner: &Owner) {
        let (key, id) = match owner {
            Owner::User(id) => (meta::SOCKET_USER, id),
            Owner::Group(id) => (meta::SOCKET_GROUP, id),
            Owner::NetCls(id) => (meta::NET_CLS, id),
            Owner::Cgroup { path, id } => {
                let level = u32::try_from(path.split('/').count()).unwrap_or(u32::MAX);
                self.out.push(Expression::Cgroup { level, to: HERE });
                return self.compare(false, id.to_ne_bytes().to_vec());
            }
        };
        self.out.push(Expression::Meta { key, to: HERE });
        self.compare(false, id.to_ne_bytes().to_vec());
    }

    fn load_mark(&mut self, of: Marked) {
        self.out.push(match of {
            Marked::Packet => Expression::Meta { key: meta::MARK, to: HERE },
            Marked::Connection => Expression::Conntrack { key: conntrack::MARK, direction: None, to: HERE },
        });
    }

    fn set_mark(&mut self, of: Marked, mark: Mark) {
        if mark.mask == u32::MAX {
            self.out.push(Expression::Immediate { to: HERE, value: mark.value.to_ne_bytes().to_vec() });
        } else {
            self.load_mark(of);
            self.mask(!mark.mask, mark.value);
        }
        self.out.push(match of {
            Marked::Packet => Expression::SetMeta { key: meta::MARK, from: HERE },
            Marked::Connection => Expression::SetConntrack { key: conntrack::MARK, from: HERE },
        });
    }

    /// A whole number of bytes is loaded as such; other prefixes are masked.
    fn source(&mut self, address: IpAddr, bits: u8, negated: bool) {
        let mut value = match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let whole = load(Field::Saddr, self.family, HERE);
        if bits != 0 && bits.is_multiple_of(8) {
            value.truncate(usize::from(bits / 8));
            if let Expression::Payload { base, offset, to, .. } = whole {
                self.out.push(Expression::Payload { base, offset, length: u32::from(bits / 8), to });
            }
        } else {
            let mask = prefix_mask(value.len(), bits);
            self.out.push(whole);
            self.out.push(Expression::Bitwise { from: HERE, to: HERE, xor: vec![0; mask.len()], mask });
        }
        self.compare(negated, value);
    }

    fn connection_bits(&mut self, key: u32, bits: u32) {
        self.out.push(Expression::Conntrack { key, direction: None, to: HERE });
        self.mask(bits, 0);
        self.compare(true, vec![0; 4]);
    }

    fn set_priority(&mut self, value: &NewPriority) {
        match value {
            NewPriority::None => self
                .out
                .push(Expression::Immediate { to: HERE, value: Handle::NONE.0.to_ne_bytes().to_vec() }),
            NewPriority::Map(lookup) => self.lookup(lookup, Found::Data(HERE)),
            NewPriority::And(mask) => self.masked_priority(*mask, 0),
            NewPriority::Or(bits) => self.masked_priority(Handle(!bits.0), bits.0),
        }
        self.out.push(Expression::SetMeta { key: meta::PRIORITY, from: HERE });
    }

    fn update(&mut self, lookup: &Lookup, data: &[Field], seconds: u32) {
        let key_end = load_all(&lookup.key, self.family, HERE, &mut self.out);
        let data_start = key_end.aligned();
        load_all(data, self.family, data_start, &mut self.out);
        self.out.push(Expression::Update {
            set: lookup.set.as_str().to_owned(),
            key: HERE,
            data: Some(data_start),
            timeout: u64::from(seconds) * 1000,
        });
    }

    fn lookup(&mut self, lookup: &Lookup, found: Found) {
        load_all(&lookup.key, self.family, HERE, &mut self.out);
        self.out.push(Expression::Lookup { set: lookup.set.as_str().to_owned(), from: HERE, found });
    }

    fn masked_priority(&mut self, mask: Handle, xor: u32) {
        self.out.push(Expression::Meta { key: meta::PRIORITY, to: HERE });
        self.mask(mask.0, xor);
    }

    fn mask(&mut self, mask: u32, xor: u32) {
        let (mask, xor) = (mask.to_ne_bytes().to_vec(), xor.to_ne_bytes().to_vec());
        self.out.push(Expression::Bitwise { from: HERE, to: HERE, mask, xor });
    }

    fn compare(&mut self, negated: bool, value: Vec<u8>) {
        let comparison = if negated { Comparison::NotEqual } else { Comparison::Equal };
        self.out.push(Expression::Compare { comparison, from: HERE, value });
    }
}

fn interface_name(name: &str) -> Vec<u8> {
    let mut value = name.as_bytes().to_vec();
    value.resize(INTERFACE_NAME, 0);
    value
}

/// A mask of this many bytes whose first bits are set.
fn prefix_mask(length: usize, bits: u8) -> Vec<u8> {
    let mut mask = vec![0; length];
    for bit in 0..usize::from(bits).min(length * 8) {
        mask[bit / 8] |= 0x80 >> (bit % 8);
    }
    mask
}

/// `NFPROTO_*`.
pub(super) fn protocol_family(of: Family) -> u8 {
    match of {
        Family::Ip => family::IPV4,
        Family::Ip6 => family::IPV6,
    }
}

impl From<&Verdict> for Decision {
    fn from(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Jump(chain) => Self::Jump(chain.as_str().to_owned()),
            Verdict::Goto(chain) => Self::Goto(chain.as_str().to_owned()),
            Verdict::Accept => Self::Accept,
            Verdict::Drop => Self::Drop,
        }
    }
}
