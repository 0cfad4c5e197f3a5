//! Expressions that change a register, or compare it.

use super::{Fields, Known, Reading};
use crate::decode::bytes::{host_order, name};
use crate::decode::numbers::INET;
use crate::decode::registers::{Loaded, Value};
use crate::rules::{Field, Match, Statement};

impl Reading<'_> {
    pub(super) fn bitwise(&mut self, fields: Fields<'_>) -> Known {
        const MASK_XOR: u32 = 0;
        let (Some(from), Some(to)) = (fields.number(1)?, fields.number(2)?) else { return Ok(None) };
        let (mask, xor) = (fields.value(4)?, fields.value(5)?);
        let is_mask = fields.number(6)?.unwrap_or(MASK_XOR) == MASK_XOR;
        let value = match (self.registers.get(from), mask.filter(|_| is_mask).zip(xor)) {
            (Value::Field(loaded), Some((mask, xor))) if loaded.mask.is_none() => {
                let numbers = loaded.number(mask).zip(loaded.number(xor));
                numbers.map(|(mask, xor)| Value::Field(Loaded { mask: Some(mask), xor, ..loaded }))
            }
            _ => None,
        };
        self.registers.set(to, value.unwrap_or_else(|| Value::Unknown("bitwise".to_owned())));
        Ok(Some(()))
    }

    pub(super) fn byteorder(&mut self, fields: Fields<'_>) -> Known {
        let (Some(from), Some(to)) = (fields.number(1)?, fields.number(2)?) else { return Ok(None) };
        let value = match self.registers.get(from) {
            Value::Field(loaded) => {
                Value::Field(Loaded { big_endian: !loaded.big_endian || one_byte(loaded.field), ..loaded })
            }
            _ => Value::Unknown("byteorder".to_owned()),
        };
        self.registers.set(to, value);
        Ok(Some(()))
    }

    pub(super) fn compare(&mut self, fields: Fields<'_>) -> Known {
        let (Some(from), Some(operation), Some(bytes)) =
            (fields.number(1)?, fields.number(2)?, fields.value(3)?)
        else {
            return Ok(None);
        };
        let statement = self.comparison(from, operation, bytes);
        if let Statement::Match(Match::Number { field: Field::Family, ranges, negated: false, .. }) =
            &statement
            && self.context.family == INET
            && let [(family, _)] = ranges[..]
        {
            self.family = u8::try_from(family).unwrap_or(INET);
        }
        self.act(statement)
    }

    fn comparison(&self, from: u32, operation: u32, bytes: &[u8]) -> Statement {
        const NOT_EQUAL: u32 = 1;
        const LESS: u32 = 2;
        const AT_MOST: u32 = 3;
        const MORE: u32 = 4;
        const AT_LEAST: u32 = 5;
        let negated = operation == NOT_EQUAL;
        let known = match self.registers.get(from) {
            Value::Field(loaded) if loaded.covers(bytes.len()) => loaded.number(bytes).and_then(|number| {
                let range = match operation {
                    LESS => (0, number.checked_sub(1)?),
                    AT_MOST => (0, number),
                    MORE => (number.checked_add(1)?, loaded.field.all()),
                    AT_LEAST => (number, loaded.field.all()),
                    _ => (number ^ loaded.xor, number ^ loaded.xor),
                };
                Some(loaded.test(bytes.len(), [range], negated))
            }),
            // The kernel compares as many bytes as are given: with a zero byte it is the whole
            // name.
            Value::InterfaceName(side) if operation <= NOT_EQUAL => {
                Some(Match::Interface { side, name: name(bytes), prefix: !bytes.contains(&0), negated })
            }
            Value::InterfaceNumber(side) if operation <= NOT_EQUAL => host_order(bytes).map(|number| {
                let name = u32::try_from(number).ok().and_then(|number| self.context.links.get(&number));
                let name = name.cloned().unwrap_or_else(|| format!("#{number}"));
                Match::Interface { side, name, prefix: false, negated }
            }),
            _ => None,
        };
        known.map_or_else(|| self.unknown("cmp", from), Statement::Match)
    }

    fn unknown(&self, operation: &str, register: u32) -> Statement {
        Statement::Unknown(match self.registers.get(register) {
            Value::Unknown(what) => what,
            _ => operation.to_owned(),
        })
    }

    pub(super) fn range(&mut self, fields: Fields<'_>) -> Known {
        let (Some(from), Some(operation)) = (fields.number(1)?, fields.number(2)?) else { return Ok(None) };
        let (Some(first), Some(last)) = (fields.value(3)?, fields.value(4)?) else { return Ok(None) };
        let Value::Field(loaded) = self.registers.get(from) else { return Ok(None) };
        let Some(range) = loaded.number(first).zip(loaded.number(last)) else { return Ok(None) };
        self.act(Statement::Match(loaded.test(first.len(), [range], operation != 0)))
    }

    pub(super) fn lookup(&mut self, fields: Fields<'_>) -> Known {
        const INVERTED: u32 = 1;
        let (Some(set), Some(from)) = (fields.text(1)?, fields.number(2)?) else { return Ok(None) };
        // Maps have a destination. No redirect is known to use one.
        if fields.number(3)?.is_some() {
            return Ok(None);
        }
        let inverted = fields.number(5)?.unwrap_or_default() & INVERTED != 0;
        let name = (self.context.family, self.context.table.clone(), set.to_owned());
        let ranges = self.context.sets.ranges(&name);
        let known = match (self.registers.get(from), ranges) {
            (Value::Field(loaded), Some(ranges))
                if ranges.iter().all(|(first, last)| loaded.covers(first.len().max(last.len()))) =>
            {
                let length = ranges.first().map_or(16, |(first, _)| first.len());
                let numbers =
                    ranges.iter().map(|(first, last)| loaded.number(first).zip(loaded.number(last)));
                let numbers: Option<Vec<_>> = numbers.collect();
                numbers.map(|numbers| Statement::Match(loaded.test(length, numbers, inverted)))
            }
            _ => None,
        };
        let statement = known.unwrap_or_else(|| Statement::Unknown(format!("@{set}")));
        self.act(statement)
    }
}

/// A value of one byte is the same in every order.
fn one_byte(field: Field) -> bool {
    field.all() == u128::from(u8::MAX)
}
