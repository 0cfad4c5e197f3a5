//! Expressions as attributes.

use super::{Base, Comparison, Decision, Expression, Found, Register};
use crate::netlink::attributes::Writer;
use crate::netlink::nf_tables::{bitwise, compare, conntrack, data, dynset, expression, fib, immediate};
use crate::netlink::nf_tables::{
    lookup, masquerade, meta, nat, numgen, payload, redirect, reject, socket, tproxy, verdict,
};

impl Expression {
    /// The name by which the kernel knows the expression.
    pub(in crate::netlink) fn name(&self) -> &str {
        match self {
            Self::Payload { .. } => "payload",
            Self::Meta { .. } | Self::SetMeta { .. } => "meta",
            Self::Conntrack { .. } | Self::SetConntrack { .. } => "ct",
            Self::Cgroup { .. } => "socket",
            Self::Fib { .. } => "fib",
            Self::Random { .. } => "numgen",
            Self::Lookup { .. } => "lookup",
            Self::Compare { .. } => "cmp",
            Self::Bitwise { .. } => "bitwise",
            Self::Immediate { .. } | Self::Verdict(_) => "immediate",
            Self::DestinationNat { .. } => "nat",
            Self::Masquerade { .. } => "masq",
            Self::Redirect { .. } => "redir",
            Self::Tproxy { .. } => "tproxy",
            Self::Reject { .. } => "reject",
            Self::Update { .. } => "dynset",
            Self::Foreign(name) => name,
        }
    }

    pub(in crate::netlink) fn write(&self, out: &mut Writer<'_>) {
        out.text(expression::NAME, self.name());
        out.nest(expression::DATA, |out| self.write_data(out));
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each expression")]
    fn write_data(&self, out: &mut Writer<'_>) {
        match self {
            Self::Payload { base, offset, length, to } => {
                register(out, payload::TO, *to);
                let base = match base {
                    Base::Network => payload::NETWORK,
                    Base::Transport => payload::TRANSPORT,
                };
                out.be32(payload::BASE, base);
                out.be32(payload::OFFSET, *offset);
                out.be32(payload::LENGTH, *length);
            }
            Self::Meta { key, to } => {
                out.be32(meta::KEY, *key);
                register(out, meta::TO, *to);
            }
            Self::SetMeta { key, from } => {
                out.be32(meta::KEY, *key);
                register(out, meta::FROM, *from);
            }
            Self::Conntrack { key, direction, to } => {
                out.be32(conntrack::KEY, *key);
                register(out, conntrack::TO, *to);
                if let Some(direction) = direction {
                    out.byte(conntrack::DIRECTION, *direction);
                }
            }
            Self::SetConntrack { key, from } => {
                out.be32(conntrack::KEY, *key);
                register(out, conntrack::FROM, *from);
            }
            Self::Cgroup { level, to } => {
                out.be32(socket::KEY, socket::CGROUP);
                register(out, socket::TO, *to);
                out.be32(socket::LEVEL, *level);
            }
            Self::Fib { flags, result, to } => {
                out.be32(fib::FLAGS, *flags);
                out.be32(fib::RESULT, *result);
                register(out, fib::TO, *to);
            }
            Self::Random { modulus, to } => {
                register(out, numgen::TO, *to);
                out.be32(numgen::MODULUS, *modulus);
                out.be32(numgen::KIND, numgen::RANDOM);
                out.be32(numgen::OFFSET, 0);
            }
            Self::Lookup { set, from, found } => {
                out.text(lookup::SET, set);
                register(out, lookup::FROM, *from);
                match found {
                    Found::Key => {}
                    Found::NoKey => out.be32(lookup::FLAGS, lookup::INVERTED),
                    Found::Data(to) => register(out, lookup::TO, *to),
                    Found::Verdict => out.be32(lookup::TO, VERDICT_REGISTER),
                }
            }
            Self::Compare { comparison, from, value: right } => {
                register(out, compare::FROM, *from);
                let comparison = match comparison {
                    Comparison::Equal => compare::EQUAL,
                    Comparison::NotEqual => compare::NOT_EQUAL,
                };
                out.be32(compare::OPERATION, comparison);
                value(out, compare::DATA, right);
            }
            Self::Bitwise { from, to, mask, xor } => {
                register(out, bitwise::FROM, *from);
                register(out, bitwise::TO, *to);
                out.be32(bitwise::LENGTH, u32::try_from(mask.len()).unwrap_or(u32::MAX));
                value(out, bitwise::MASK, mask);
                value(out, bitwise::XOR, xor);
            }
            Self::Immediate { to, value: constant } => {
                register(out, immediate::TO, *to);
                value(out, immediate::DATA, constant);
            }
            Self::Verdict(decision) => {
                out.be32(immediate::TO, VERDICT_REGISTER);
                out.nest(immediate::DATA, |out| decision.write(out));
            }
            Self::DestinationNat { family, address, port, flags } => {
                out.be32(nat::KIND, nat::DESTINATION);
                out.be32(nat::FAMILY, *family);
                register(out, nat::ADDRESS, *address);
                if let Some(port) = port {
                    register(out, nat::PORT, *port);
                }
                if *flags != 0 {
                    out.be32(nat::FLAGS, *flags);
                }
            }
            Self::Masquerade { flags } => {
                if *flags != 0 {
                    out.be32(masquerade::FLAGS, *flags);
                }
            }
            Self::Redirect { port } => {
                register(out, redirect::PORT, *port);
                out.be32(redirect::FLAGS, redirect::F_PORT);
            }
            Self::Tproxy { family, port } => {
                out.be32(tproxy::FAMILY, *family);
                register(out, tproxy::PORT, *port);
            }
            Self::Reject { kind, code } => {
                out.be32(reject::KIND, *kind);
                if *kind != reject::TCP_RESET {
                    out.byte(reject::CODE, *code);
                }
            }
            Self::Update { set, key, data, timeout } => {
                register(out, dynset::KEY, *key);
                if let Some(data) = data {
                    register(out, dynset::DATA, *data);
                }
                out.be32(dynset::OPERATION, dynset::UPDATE);
                out.text(dynset::SET, set);
                if *timeout != 0 {
                    out.be64(dynset::TIMEOUT, *timeout);
                }
            }
            Self::Foreign(_) => {}
        }
    }
}

/// The register that ends a rule when it is written.
pub(super) const VERDICT_REGISTER: u32 = 0;

fn register(out: &mut Writer<'_>, kind: u16, register: Register) {
    out.be32(kind, register.number());
}

fn value(out: &mut Writer<'_>, kind: u16, bytes: &[u8]) {
    out.nest(kind, |out| out.bytes(data::VALUE, bytes));
}

impl Decision {
    pub(in crate::netlink) fn write(&self, out: &mut Writer<'_>) {
        let (code, chain) = match self {
            Self::Drop => (verdict::DROP, None),
            Self::Accept => (verdict::ACCEPT, None),
            Self::Return => (verdict::RETURN, None),
            Self::Jump(chain) => (verdict::JUMP, Some(chain)),
            Self::Goto(chain) => (verdict::GOTO, Some(chain)),
            Self::Other(code) => (*code, None),
        };
        out.nest(data::VERDICT, |out| {
            out.bytes(verdict::CODE, &code.to_be_bytes());
            if let Some(chain) = chain {
                out.text(verdict::CHAIN, chain);
            }
        });
    }
}
