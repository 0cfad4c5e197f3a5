//! Elements as attributes, and back.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::attributes::{Attribute, Attributes, Malformed, Writer};
use super::expression::Decision;
use super::message::{FAMILY_HEADER, HEADER, Message};
use super::nf_tables::{data, element, element_list, list, message as kind};
use super::value::{self, predecessor, successor};
use crate::nft::{Data, DataType, Element, Family, Name, Set, Value, Verdict};

pub(super) fn write_element(out: &mut Writer<'_>, each: &Element, with_data: bool) {
    let single_interval = each.key.len() == 1 && each.last.is_some();
    out.nest(list::ELEMENT, |out| {
        write_values(out, element::KEY, &each.key);
        if let Some(last) = each.last.as_ref().filter(|_| !single_interval) {
            write_values(out, element::KEY_END, last);
        }
        match &each.data {
            Data::None => {}
            _ if !with_data => {}
            Data::Values(values) => write_values(out, element::DATA, values),
            Data::Verdict(verdict) => out.nest(element::DATA, |out| Decision::from(verdict).write(out)),
        }
    });
    // A range of a single field is two elements: its first value, and the first one after it.
    if let Some([last]) = each.last.as_deref().filter(|_| single_interval)
        && let Some(end) = successor(*last)
    {
        out.nest(list::ELEMENT, |out| {
            out.be32(element::FLAGS, element::F_INTERVAL_END);
            write_values(out, element::KEY, &[end]);
        });
    }
}

fn write_values(out: &mut Writer<'_>, kind: u16, values: &[Value]) {
    out.nest(kind, |out| out.nest_plain(data::VALUE, |out| value::write(values, out.0)));
}

/// Collects the elements of a set.
#[derive(Debug)]
pub struct Elements<'a> {
    set: &'a Set,
    family: Family,
    found: Vec<Element>,
    /// The exclusive ends of ranges of a single field. They come in any order.
    ends: BTreeSet<Value>,
    foreign: usize,
}

impl<'a> Elements<'a> {
    /// Elements of this set.
    pub fn of(set: &'a Set, family: Family) -> Self {
        Self { set, family, found: Vec::new(), ends: BTreeSet::new(), foreign: 0 }
    }

    /// Reads an answer to [`super::Query::Elements`].
    pub fn read(&mut self, message: Message<'_>) -> Result<(), Malformed> {
        if message.kind != kind::NEW_ELEMENT {
            return Ok(());
        }
        let Some(elements) = message.attributes()?.find(element_list::ELEMENTS)? else { return Ok(()) };
        for each in elements.nested() {
            let each = each?;
            if each.kind == list::ELEMENT {
                self.element(each)?;
            }
        }
        Ok(())
    }

    /// The elements, and the number of those that the set of ours cannot have.
    pub fn finish(mut self) -> (Vec<Element>, usize) {
        if let ([field], true) = (self.set.key.as_slice(), self.set.interval) {
            for element in &mut self.found {
                let first = element.key[0];
                let end = self.ends.range((Bound::Excluded(first), Bound::Unbounded)).next();
                let last = end.map_or_else(|| value::last(*field, self.family), |end| predecessor(*end));
                element.last = last.map(|last| vec![last]);
            }
        }
        (self.found, self.foreign)
    }

    fn element(&mut self, attribute: Attribute<'_>) -> Result<(), Malformed> {
        let fields = attribute.nested();
        let values = |kind| -> Result<Option<Vec<_>>, Malformed> {
            let Some(outer) = fields.find(kind)? else { return Ok(None) };
            let inner = outer.nested().find(data::VALUE)?;
            Ok(inner.and_then(|inner| value::read(inner.value, &self.set.key, self.family)))
        };
        let flags = fields.find(element::FLAGS)?.map(Attribute::be32).transpose()?.unwrap_or_default();
        let Some(key) = values(element::KEY)? else {
            self.foreign += 1;
            return Ok(());
        };
        let is_range_of_one = self.set.interval && self.set.key.len() == 1;
        if is_range_of_one && flags & element::F_INTERVAL_END != 0 {
            self.ends.extend(key);
            return Ok(());
        }
        let last = if self.set.interval && !is_range_of_one {
            Some(values(element::KEY_END)?.unwrap_or_else(|| key.clone()))
        } else {
            None
        };
        match self.data(fields.find(element::DATA)?)? {
            Some(data) => self.found.push(Element { set: self.set.name.clone(), key, last, data }),
            None => self.foreign += 1,
        }
        Ok(())
    }

    fn data(&self, attribute: Option<Attribute<'_>>) -> Result<Option<Data>, Malformed> {
        let read = |attribute: Attribute<'_>| -> Result<Option<Data>, Malformed> {
            Ok(match &self.set.data {
                DataType::None => None,
                DataType::Values(fields) => attribute
                    .nested()
                    .find(data::VALUE)?
                    .and_then(|inner| value::read(inner.value, fields, self.family))
                    .map(Data::Values),
                DataType::Verdict => verdict(Decision::read(attribute.nested())?).map(Data::Verdict),
            })
        };
        match attribute {
            Some(attribute) => read(attribute),
            None => Ok((self.set.data == DataType::None).then_some(Data::None)),
        }
    }
}

fn verdict(decision: Decision) -> Option<Verdict> {
    match decision {
        Decision::Accept => Some(Verdict::Accept),
        Decision::Drop => Some(Verdict::Drop),
        Decision::Jump(chain) => Some(Verdict::Jump(Name::new(chain))),
        Decision::Goto(chain) => Some(Verdict::Goto(Name::new(chain))),
        Decision::Return | Decision::Other(_) => None,
    }
}

/// The key of the element that covers a position of a message with elements.
pub(super) fn key_at(message: &[u8], offset: usize) -> Option<&[u8]> {
    let body = Attributes(message.get(HEADER + FAMILY_HEADER..)?);
    let (range, elements) =
        body.positions().flatten().find(|(_, each)| each.kind == element_list::ELEMENTS)?;
    // Positions of values, counted from the start of the message.
    let start = HEADER + FAMILY_HEADER + range.end - elements.value.len();
    let offset = offset.checked_sub(start)?;
    let (_, covering) = elements.nested().positions().flatten().find(|(range, _)| range.contains(&offset))?;
    let key = covering.nested().find(element::KEY).ok()??;
    Some(key.nested().find(data::VALUE).ok()??.value)
}
