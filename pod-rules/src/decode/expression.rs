//! The expressions of a rule of `nf_tables` as statements.
//!
//! An expression loads something into a register, changes a register, compares it, or acts. The
//! decoder follows what each register has, so that a comparison becomes a match of a field.

mod compare;
mod load;

use std::collections::BTreeMap;

use isp_dataplane::netlink::{Attribute, Attributes, Malformed};

use super::bytes::{big_endian, host_order};
use super::numbers::{IPV6, verdict};
use super::registers::{Registers, Value};
use super::sets::Sets;
use super::xt;
use crate::rules::{Assign, MarkOf, Statement, Tproxy, Verdict};

/// What a rule refers to.
pub(super) struct Context<'a> {
    pub(super) family: u8,
    pub(super) table: String,
    pub(super) links: &'a BTreeMap<u32, String>,
    pub(super) sets: &'a Sets,
}

/// Reads the expressions of a rule.
pub(super) fn statements(list: Attributes<'_>, context: &Context<'_>) -> Result<Vec<Statement>, Malformed> {
    const NAME: u16 = 1;
    const DATA: u16 = 2;
    let mut reading =
        Reading { context, family: context.family, registers: Registers::default(), out: Vec::new() };
    for expression in list {
        let attributes = expression?.nested();
        let name = attributes.require(NAME)?.text()?;
        let fields = attributes.find(DATA)?.map_or(Attributes(&[]), Attribute::nested);
        if reading.expression(name, Fields(fields))?.is_none() {
            reading.out.push(Statement::Unknown(name.to_owned()));
        }
    }
    Ok(reading.out)
}

/// The attributes of an expression.
#[derive(Clone, Copy)]
struct Fields<'a>(Attributes<'a>);

impl<'a> Fields<'a> {
    fn number(self, kind: u16) -> Result<Option<u32>, Malformed> {
        self.0.find(kind)?.map(Attribute::be32).transpose()
    }

    fn text(self, kind: u16) -> Result<Option<&'a str>, Malformed> {
        self.0.find(kind)?.map(Attribute::text).transpose()
    }

    fn value(self, kind: u16) -> Result<Option<&'a [u8]>, Malformed> {
        const VALUE: u16 = 1;
        let Some(outer) = self.0.find(kind)? else { return Ok(None) };
        Ok(outer.nested().find(VALUE)?.map(|inner| inner.value))
    }
}

struct Reading<'a> {
    context: &'a Context<'a>,
    /// In a table of both families: the one that an earlier match of this rule has left.
    family: u8,
    registers: Registers,
    out: Vec<Statement>,
}

/// `None` for an expression that is not known.
type Known = Result<Option<()>, Malformed>;

impl Reading<'_> {
    fn expression(&mut self, name: &str, fields: Fields<'_>) -> Known {
        match name {
            // They only watch.
            "counter" | "log" | "last" => Ok(Some(())),
            "payload" => self.payload(fields),
            "meta" => self.meta(fields),
            "ct" => self.conntrack(fields),
            "fib" => self.fib(fields),
            "socket" => self.socket(fields),
            "bitwise" => self.bitwise(fields),
            "byteorder" => self.byteorder(fields),
            "cmp" => self.compare(fields),
            "range" => self.range(fields),
            "lookup" => self.lookup(fields),
            "immediate" => self.immediate(fields),
            "redir" => {
                let port = self.port(fields.number(1)?);
                self.act(Statement::Redirect { port })
            }
            "tproxy" => {
                let port = self.port(fields.number(3)?);
                self.act(Statement::Tproxy(Tproxy { port, mark: None, decides: false }))
            }
            "nat" => self.nat(fields),
            "masq" => self.act(Statement::SourceNat),
            "reject" => self.act(Statement::Verdict(Verdict::Drop)),
            "match" => self.extension(fields, xt::matches),
            "target" => self.extension(fields, xt::target),
            _ => Ok(None),
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "ends the branches of a match")]
    fn act(&mut self, statement: Statement) -> Known {
        self.out.push(statement);
        Ok(Some(()))
    }

    fn immediate(&mut self, fields: Fields<'_>) -> Known {
        const DATA: u16 = 2;
        const VERDICT: u16 = 2;
        const CODE: u16 = 1;
        const CHAIN: u16 = 2;
        let Some(to) = fields.number(1)? else { return Ok(None) };
        if to != 0 {
            let Some(value) = fields.value(DATA)? else { return Ok(None) };
            self.registers.set(to, Value::Constant(value.to_vec()));
            return Ok(Some(()));
        }
        let decision = fields.0.require(DATA)?.nested().require(VERDICT)?.nested();
        let chain = || Ok::<_, Malformed>(decision.require(CHAIN)?.text()?.to_owned());
        let verdict = match decision.require(CODE)?.be32()?.cast_signed() {
            verdict::DROP => Verdict::Drop,
            verdict::ACCEPT => Verdict::Accept,
            verdict::RETURN => Verdict::Return,
            verdict::JUMP => Verdict::Jump(chain()?),
            verdict::GOTO => Verdict::Goto(chain()?),
            verdict::CONTINUE => return Ok(Some(())),
            _ => return Ok(None),
        };
        self.act(Statement::Verdict(verdict))
    }

    fn nat(&mut self, fields: Fields<'_>) -> Known {
        const DESTINATION: u32 = 1;
        if fields.number(1)? != Some(DESTINATION) {
            return self.act(Statement::SourceNat);
        }
        let address = self.registers.constant(fields.number(3)?);
        let four = |bytes: &[u8]| <[u8; 4]>::try_from(bytes).ok().map(std::net::IpAddr::from);
        let sixteen = |bytes: &[u8]| <[u8; 16]>::try_from(bytes).ok().map(std::net::IpAddr::from);
        let address = address.and_then(|bytes| four(&bytes).or_else(|| sixteen(&bytes)));
        let port = self.port(fields.number(5)?);
        self.act(Statement::DestinationNat { address, port })
    }

    fn port(&self, register: Option<u32>) -> Option<u16> {
        let bytes = self.registers.constant(register)?;
        big_endian(bytes.get(..2)?).and_then(|port| u16::try_from(port).ok())
    }

    /// Sets a mark from a register.
    fn assign(&mut self, target: MarkOf, from: u32) -> Known {
        let narrow = |number: u128| u32::try_from(number).unwrap_or_default();
        let assign = match self.registers.get(from) {
            Value::Constant(bytes) => {
                host_order(&bytes).map(|value| Assign { target, keep: 0, source: None, value: narrow(value) })
            }
            Value::Field(loaded) => loaded.mark().map(|source| {
                let mask = loaded.mask.map_or(u32::MAX, narrow);
                let value = narrow(loaded.xor);
                if source == target {
                    Assign { target, keep: mask, source: None, value }
                } else {
                    Assign { target, keep: 0, source: Some((source, mask)), value }
                }
            }),
            _ => None,
        };
        match assign {
            Some(assign) => self.act(Statement::Assign(assign)),
            None => Ok(None),
        }
    }

    /// An extension of iptables.
    fn extension(&mut self, fields: Fields<'_>, decode: xt::Decode) -> Known {
        const NAME: u16 = 1;
        const REVISION: u16 = 2;
        const INFO: u16 = 3;
        let (Some(name), Some(info)) = (fields.text(NAME)?, fields.0.find(INFO)?) else { return Ok(None) };
        let revision = fields.number(REVISION)?.unwrap_or_default();
        let is_ipv6 = self.context.family == IPV6;
        let extension = xt::Extension { name, revision, is_ipv6, info: info.value };
        self.out.extend(decode(&extension));
        Ok(Some(()))
    }
}
