//! Expressions that load something into a register.

use super::{Fields, Known, Reading};
use crate::decode::numbers::{IPV4, IPV6, conntrack, fib, meta};
use crate::decode::registers::{Loaded, Value};
use crate::rules::{Field, MarkOf, Side};

impl Reading<'_> {
    /// Loads a field; `None` is not known.
    fn load(&mut self, register: u32, field: Option<Field>, what: &str) {
        let value = field.map(|field| Value::Field(Loaded::new(field)));
        self.registers.set(register, value.unwrap_or_else(|| Value::Unknown(what.to_owned())));
    }

    pub(super) fn payload(&mut self, fields: Fields<'_>) -> Known {
        const NETWORK: u32 = 1;
        const TRANSPORT: u32 = 2;
        let (base, offset, length) = (fields.number(2)?, fields.number(3)?, fields.number(4)?);
        // Without a destination it writes to the packet.
        let Some(to) = fields.number(1)? else { return Ok(None) };
        let (Some(base), Some(offset), Some(length)) = (base, offset, length) else { return Ok(None) };
        let found = match (base, offset, length) {
            (TRANSPORT, 0, 2) => Some((Field::SourcePort, 0)),
            (TRANSPORT, 2, 2) => Some((Field::DestinationPort, 0)),
            (TRANSPORT, 13, 1) => Some((Field::TcpFlags, 0)),
            (NETWORK, offset, length) => self.network(offset, length),
            _ => None,
        };
        self.registers.set(
            to,
            match found {
                Some((field, shift)) => Value::Field(Loaded { shift, ..Loaded::new(field) }),
                None => Value::Unknown(format!("payload {base} {offset} {length}")),
            },
        );
        Ok(Some(()))
    }

    /// A field of the network header. The first bytes of an address are enough for a network.
    fn network(&self, offset: u32, length: u32) -> Option<(Field, u32)> {
        let address = |field, start: u32, size: u32| {
            let rest = (start + size).checked_sub(offset + length)?;
            (offset == start).then_some((field, rest * 8))
        };
        match self.family {
            IPV4 if (offset, length) == (9, 1) => Some((Field::Protocol, 0)),
            IPV6 if (offset, length) == (6, 1) => Some((Field::Protocol, 0)),
            IPV4 => address(Field::Source4, 12, 4).or_else(|| address(Field::Destination4, 16, 4)),
            IPV6 => address(Field::Source6, 8, 16).or_else(|| address(Field::Destination6, 24, 16)),
            _ => None,
        }
    }

    pub(super) fn meta(&mut self, fields: Fields<'_>) -> Known {
        let Some(key) = fields.number(2)? else { return Ok(None) };
        if let Some(from) = fields.number(3)? {
            return match key {
                meta::MARK => self.assign(MarkOf::Packet, from),
                meta::TRACE => Ok(Some(())),
                _ => Ok(None),
            };
        }
        let Some(to) = fields.number(1)? else { return Ok(None) };
        let value = match key {
            meta::MARK => Value::Field(Loaded::new(Field::Mark)),
            meta::USER => Value::Field(Loaded::new(Field::User)),
            meta::GROUP => Value::Field(Loaded::new(Field::Group)),
            meta::FAMILY => Value::Field(Loaded::new(Field::Family)),
            meta::PROTOCOL => Value::Field(Loaded::new(Field::Protocol)),
            meta::CGROUP => Value::Field(Loaded::new(Field::NetCls)),
            meta::INPUT_NAME => Value::InterfaceName(Side::Input),
            meta::OUTPUT_NAME => Value::InterfaceName(Side::Output),
            meta::INPUT => Value::InterfaceNumber(Side::Input),
            meta::OUTPUT => Value::InterfaceNumber(Side::Output),
            other => Value::Unknown(format!("meta {other}")),
        };
        self.registers.set(to, value);
        Ok(Some(()))
    }

    pub(super) fn conntrack(&mut self, fields: Fields<'_>) -> Known {
        let Some(key) = fields.number(2)? else { return Ok(None) };
        if let Some(from) = fields.number(4)? {
            return match key {
                conntrack::MARK => self.assign(MarkOf::Connection, from),
                // Keeps connections with equal addresses apart; redirects do not depend on it.
                conntrack::ZONE => Ok(Some(())),
                _ => Ok(None),
            };
        }
        let Some(to) = fields.number(1)? else { return Ok(None) };
        let field = match key {
            conntrack::STATE => Some(Field::ConnectionState),
            conntrack::DIRECTION => Some(Field::Direction),
            conntrack::MARK => Some(Field::ConnectionMark),
            _ => None,
        };
        self.load(to, field, "ct");
        Ok(Some(()))
    }

    pub(super) fn fib(&mut self, fields: Fields<'_>) -> Known {
        let (to, result, flags) = (fields.number(1)?, fields.number(2)?, fields.number(3)?);
        let (Some(to), Some(result), Some(flags)) = (to, result, flags) else { return Ok(None) };
        let field = match (result, flags & fib::EITHER) {
            _ if flags & fib::MARK != 0 => None,
            (fib::TYPE, fib::SOURCE) => Some(Field::SourceType),
            (fib::TYPE, fib::DESTINATION) => Some(Field::DestinationType),
            _ => None,
        };
        self.load(to, field, "fib");
        Ok(Some(()))
    }

    pub(super) fn socket(&mut self, fields: Fields<'_>) -> Known {
        const TRANSPARENT: u32 = 0;
        const CGROUP: u32 = 3;
        let (key, Some(to)) = (fields.number(1)?, fields.number(2)?) else { return Ok(None) };
        let field = match key {
            Some(TRANSPARENT) => Some(Field::TransparentSocket),
            Some(CGROUP) => Some(Field::Cgroup),
            _ => None,
        };
        self.load(to, field, "socket");
        Ok(Some(()))
    }
}
