//! Expressions from attributes.

use super::write::VERDICT_REGISTER;
use super::{Base, Comparison, Decision, Expression, Found, Register};
use crate::netlink::attributes::{Attribute, Attributes, Malformed};
use crate::netlink::nf_tables::{
    bitwise, byteorder, compare, conntrack, data, dynset, expression, fib, immediate,
};
use crate::netlink::nf_tables::{list, lookup, masquerade, meta, nat, numgen, payload, redirect, reject};
use crate::netlink::nf_tables::{socket, tproxy, verdict};

/// Reads the expressions of a rule.
pub(in crate::netlink) fn read_all(attributes: Attributes<'_>) -> Result<Vec<Expression>, Malformed> {
    let mut expressions = Vec::new();
    for attribute in attributes {
        let attribute = attribute?;
        if attribute.kind == list::ELEMENT && !is_idle(attribute.nested())? {
            expressions.push(Expression::read(attribute.nested())?);
        }
    }
    Ok(expressions)
}

/// `nft` swaps the bytes of values in host order before it looks them up in a set with ranges, even
/// of the protocol, which has only one byte.
fn is_idle(attributes: Attributes<'_>) -> Result<bool, Malformed> {
    if attributes.require(expression::NAME)?.text()? != "byteorder" {
        return Ok(false);
    }
    let fields = Fields(attributes.require(expression::DATA)?.nested());
    let same = fields.register(byteorder::FROM)? == fields.register(byteorder::TO)?;
    Ok(same && fields.number(byteorder::LENGTH)? == Some(1))
}

impl Expression {
    /// Reads one expression. Whatever a rule of ours cannot contain becomes
    /// [`Expression::Foreign`].
    fn read(attributes: Attributes<'_>) -> Result<Self, Malformed> {
        let name = attributes.require(expression::NAME)?.text()?;
        let fields = Fields(attributes.find(expression::DATA)?.map_or(Attributes(&[]), Attribute::nested));
        let known = Self::read_data(name, fields)?;
        Ok(known.unwrap_or_else(|| Self::Foreign(name.to_owned())))
    }

    fn read_data(name: &str, fields: Fields<'_>) -> Result<Option<Self>, Malformed> {
        match name {
            "payload" => fields.payload(),
            "meta" => fields.meta(),
            "ct" => fields.conntrack(),
            "fib" => fields.fib(),
            "numgen" => fields.numgen(),
            "lookup" => fields.lookup(),
            "cmp" => fields.compare(),
            "bitwise" => fields.bitwise(),
            "immediate" => fields.immediate(),
            "nat" => fields.nat(),
            "masq" => {
                let flags = fields.number(masquerade::FLAGS)?.unwrap_or_default();
                Ok(Some(Self::Masquerade { flags }))
            }
            "redir" => fields.redirect(),
            "tproxy" => fields.tproxy(),
            "socket" => fields.socket(),
            "reject" => fields.reject(),
            "dynset" => fields.dynset(),
            _ => Ok(None),
        }
    }
}

/// The attributes of one expression.
#[derive(Clone, Copy)]
struct Fields<'a>(Attributes<'a>);

type Read = Result<Option<Expression>, Malformed>;

impl<'a> Fields<'a> {
    fn number(self, kind: u16) -> Result<Option<u32>, Malformed> {
        self.0.find(kind)?.map(Attribute::be32).transpose()
    }

    fn register(self, kind: u16) -> Result<Option<Register>, Malformed> {
        Ok(self.number(kind)?.and_then(Register::from_number))
    }

    fn value(self, kind: u16) -> Result<Option<&'a [u8]>, Malformed> {
        let Some(outer) = self.0.find(kind)? else { return Ok(None) };
        Ok(outer.nested().find(data::VALUE)?.map(|inner| inner.value))
    }

    fn set(self, kind: u16) -> Result<String, Malformed> {
        Ok(self.0.require(kind)?.text()?.to_owned())
    }

    fn payload(self) -> Read {
        let base = match self.number(payload::BASE)? {
            Some(payload::NETWORK) => Base::Network,
            Some(payload::TRANSPORT) => Base::Transport,
            _ => return Ok(None),
        };
        let (offset, length) = (self.number(payload::OFFSET)?, self.number(payload::LENGTH)?);
        let Some(to) = self.register(payload::TO)? else { return Ok(None) };
        let (Some(offset), Some(length)) = (offset, length) else { return Ok(None) };
        Ok(Some(Expression::Payload { base, offset, length, to }))
    }

    fn meta(self) -> Read {
        let Some(key) = self.number(meta::KEY)? else { return Ok(None) };
        let read = self.register(meta::TO)?.map(|to| Expression::Meta { key, to });
        let written = self.register(meta::FROM)?.map(|from| Expression::SetMeta { key, from });
        Ok(read.or(written))
    }

    fn conntrack(self) -> Read {
        let Some(key) = self.number(conntrack::KEY)? else { return Ok(None) };
        let written = self.register(conntrack::FROM)?.map(|from| Expression::SetConntrack { key, from });
        let to = self.register(conntrack::TO)?;
        let direction = self.0.find(conntrack::DIRECTION)?.map(Attribute::byte).transpose()?;
        Ok(to.map(|to| Expression::Conntrack { key, direction, to }).or(written))
    }

    fn fib(self) -> Read {
        let (flags, result) = (self.number(fib::FLAGS)?, self.number(fib::RESULT)?);
        let Some(to) = self.register(fib::TO)? else { return Ok(None) };
        Ok(flags.zip(result).map(|(flags, result)| Expression::Fib { flags, result, to }))
    }

    fn numgen(self) -> Read {
        let is_random = self.number(numgen::KIND)? == Some(numgen::RANDOM);
        if !is_random || self.number(numgen::OFFSET)?.is_some_and(|offset| offset != 0) {
            return Ok(None);
        }
        let (modulus, to) = (self.number(numgen::MODULUS)?, self.register(numgen::TO)?);
        Ok(modulus.zip(to).map(|(modulus, to)| Expression::Random { modulus, to }))
    }

    fn lookup(self) -> Read {
        let inverted = self.number(lookup::FLAGS)?.unwrap_or_default() & lookup::INVERTED != 0;
        let found = match self.number(lookup::TO)? {
            None if inverted => Found::NoKey,
            None => Found::Key,
            Some(VERDICT_REGISTER) => Found::Verdict,
            Some(number) => match Register::from_number(number) {
                Some(register) => Found::Data(register),
                None => return Ok(None),
            },
        };
        let set = self.set(lookup::SET)?;
        Ok(self.register(lookup::FROM)?.map(|from| Expression::Lookup { set, from, found }))
    }

    fn compare(self) -> Read {
        let comparison = match self.number(compare::OPERATION)? {
            Some(compare::EQUAL) => Comparison::Equal,
            Some(compare::NOT_EQUAL) => Comparison::NotEqual,
            _ => return Ok(None),
        };
        let (from, value) = (self.register(compare::FROM)?, self.value(compare::DATA)?);
        Ok(from.zip(value).map(|(from, value)| Expression::Compare {
            comparison,
            from,
            value: value.to_vec(),
        }))
    }

    fn bitwise(self) -> Read {
        if self.number(bitwise::OPERATION)?.is_some_and(|operation| operation != bitwise::MASK_XOR) {
            return Ok(None);
        }
        let (from, to) = (self.register(bitwise::FROM)?, self.register(bitwise::TO)?);
        let (mask, xor) = (self.value(bitwise::MASK)?, self.value(bitwise::XOR)?);
        Ok(from.zip(to).zip(mask.zip(xor)).map(|((from, to), (mask, xor))| Expression::Bitwise {
            from,
            to,
            mask: mask.to_vec(),
            xor: xor.to_vec(),
        }))
    }

    fn immediate(self) -> Read {
        if self.number(immediate::TO)? == Some(VERDICT_REGISTER) {
            let value = self.0.require(immediate::DATA)?.nested();
            return Ok(Some(Expression::Verdict(Decision::read(value)?)));
        }
        let (to, value) = (self.register(immediate::TO)?, self.value(immediate::DATA)?);
        Ok(to.zip(value).map(|(to, value)| Expression::Immediate { to, value: value.to_vec() }))
    }

    fn nat(self) -> Read {
        if self.number(nat::KIND)? != Some(nat::DESTINATION) {
            return Ok(None);
        }
        let (family, address) = (self.number(nat::FAMILY)?, self.register(nat::ADDRESS)?);
        let port = self.register(nat::PORT)?;
        let flags = self.number(nat::FLAGS)?.unwrap_or_default() & !nat::DERIVED_FLAGS;
        Ok(family.zip(address).map(|(family, address)| Expression::DestinationNat {
            family,
            address,
            port,
            flags,
        }))
    }

    /// A range of ports is not ours.
    fn redirect(self) -> Read {
        let flags = self.number(redirect::FLAGS)?.unwrap_or_default();
        let port = self.register(redirect::PORT)?.filter(|_| flags == redirect::F_PORT);
        Ok(port.map(|port| Expression::Redirect { port }))
    }

    fn tproxy(self) -> Read {
        if self.0.find(tproxy::ADDRESS)?.is_some() {
            return Ok(None);
        }
        let (family, port) = (self.number(tproxy::FAMILY)?, self.register(tproxy::PORT)?);
        Ok(family.zip(port).map(|(family, port)| Expression::Tproxy { family, port }))
    }

    fn socket(self) -> Read {
        if self.number(socket::KEY)? != Some(socket::CGROUP) {
            return Ok(None);
        }
        let (level, to) = (self.number(socket::LEVEL)?, self.register(socket::TO)?);
        Ok(level.zip(to).map(|(level, to)| Expression::Cgroup { level, to }))
    }

    fn reject(self) -> Read {
        let code = self.0.find(reject::CODE)?.map(Attribute::byte).transpose()?.unwrap_or_default();
        Ok(self.number(reject::KIND)?.map(|kind| Expression::Reject { kind, code }))
    }

    fn dynset(self) -> Read {
        if self.number(dynset::OPERATION)? != Some(dynset::UPDATE) {
            return Ok(None);
        }
        let (set, data) = (self.set(dynset::SET)?, self.register(dynset::DATA)?);
        let timeout = self.0.find(dynset::TIMEOUT)?.map(Attribute::be64).transpose()?.unwrap_or_default();
        Ok(self.register(dynset::KEY)?.map(|key| Expression::Update { set, key, data, timeout }))
    }
}

impl Decision {
    /// Reads the data of an immediate expression, or of an element of a verdict map.
    pub(in crate::netlink) fn read(attributes: Attributes<'_>) -> Result<Self, Malformed> {
        let fields = attributes.require(data::VERDICT)?.nested();
        let code = fields.require(verdict::CODE)?.be32()?.cast_signed();
        let chain = || Ok(fields.require(verdict::CHAIN)?.text()?.to_owned());
        Ok(match code {
            verdict::DROP => Self::Drop,
            verdict::ACCEPT => Self::Accept,
            verdict::RETURN => Self::Return,
            verdict::JUMP => Self::Jump(chain()?),
            verdict::GOTO => Self::Goto(chain()?),
            other => Self::Other(other),
        })
    }
}
