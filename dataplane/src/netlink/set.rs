//! Sets and maps in the kernel's terms.

use super::attributes::{Attribute, Attributes, Malformed, Writer};
use super::field::{Kind, length, type_number, type_of};
use super::nf_tables::{list, set, set_description};
use crate::nft::{DataType, Family, Field, Set};

/// A set in the kernel's terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SetDescription {
    pub(super) flags: u32,
    pub(super) key_type: u32,
    pub(super) key_length: u32,
    /// Type and length of the data of a map.
    pub(super) data: Option<(u32, u32)>,
    pub(super) size: Option<u32>,
    /// The lengths of the fields of a concatenation whose elements are ranges.
    pub(super) fields: Vec<u32>,
    pub(super) user_data: Vec<u8>,
}

/// The length of a verdict in the kernel.
const VERDICT_LENGTH: u32 = 16;

impl SetDescription {
    pub(super) fn of(set: &Set, family: Family) -> Self {
        let number = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let mut flags = 0;
        if set.interval {
            flags |= set::F_INTERVAL;
            if set.key.len() > 1 {
                flags |= set::F_CONCATENATION;
            }
        }
        if set.data != DataType::None {
            flags |= set::F_MAP;
        }
        if set.dynamic {
            flags |= set::F_TIMEOUT | set::F_DYNAMIC;
        }
        Self {
            flags,
            key_type: type_number(&set.key, family),
            key_length: number(length(&set.key, family)),
            data: match &set.data {
                DataType::None => None,
                DataType::Values(fields) => {
                    Some((type_number(fields, family), number(length(fields, family))))
                }
                DataType::Verdict => Some((set::DATA_VERDICT, VERDICT_LENGTH)),
            },
            size: set.size,
            fields: if flags & set::F_CONCATENATION == 0 {
                Vec::new()
            } else {
                set.key.iter().map(|field| number(Kind::of(*field).length(family))).collect()
            },
            user_data: user_data(set, family),
        }
    }

    /// Writes all but the names.
    pub(super) fn write(&self, out: &mut Writer<'_>) {
        out.be32(set::FLAGS, self.flags);
        out.be32(set::KEY_TYPE, self.key_type);
        out.be32(set::KEY_LENGTH, self.key_length);
        if let Some((kind, length)) = self.data {
            out.be32(set::DATA_TYPE, kind);
            out.be32(set::DATA_LENGTH, length);
        }
        out.nest(set::DESCRIPTION, |out| {
            if let Some(size) = self.size {
                out.be32(set_description::SIZE, size);
            }
            if !self.fields.is_empty() {
                out.nest(set_description::CONCATENATION, |out| {
                    for length in &self.fields {
                        out.nest(list::ELEMENT, |out| out.be32(set_description::FIELD_LENGTH, *length));
                    }
                });
            }
        });
        out.bytes(set::USER_DATA, &self.user_data);
    }

    /// Reads all but the names.
    pub(super) fn read(attributes: Attributes<'_>) -> Result<Self, Malformed> {
        let number = |kind| -> Result<Option<u32>, Malformed> {
            attributes.find(kind)?.map(Attribute::be32).transpose()
        };
        let description = attributes.find(set::DESCRIPTION)?.map_or(Attributes(&[]), Attribute::nested);
        let mut fields = Vec::new();
        if let Some(list) = description.find(set_description::CONCATENATION)? {
            for field in list.nested() {
                fields.push(field?.nested().require(set_description::FIELD_LENGTH)?.be32()?);
            }
        }
        let user_data = attributes.find(set::USER_DATA)?.map(|each| each.value.to_vec());
        Ok(Self {
            flags: number(set::FLAGS)?.unwrap_or_default(),
            key_type: number(set::KEY_TYPE)?.unwrap_or_default(),
            key_length: number(set::KEY_LENGTH)?.unwrap_or_default(),
            data: number(set::DATA_TYPE)?.zip(number(set::DATA_LENGTH)?),
            size: description.find(set_description::SIZE)?.map(Attribute::be32).transpose()?,
            fields,
            user_data: user_data.unwrap_or_default(),
        })
    }
}

/// What `nft` wants to know of a set to print it as it was declared.
fn user_data(set: &Set, family: Family) -> Vec<u8> {
    const KEY_ORDER: u8 = 0;
    const DATA_ORDER: u8 = 1;
    const KEY_TYPE_OF: u8 = 3;
    const DATA_TYPE_OF: u8 = 4;
    const DATA_INTERVAL: u8 = 6;
    /// Concatenations and verdicts have no byte order.
    const NO_ORDER: u32 = 0;

    let order = |fields: &[Field]| match fields {
        [only] => Kind::of(*only).byte_order(),
        _ => NO_ORDER,
    };
    let mut out = Vec::new();
    type_of::number(&mut out, KEY_ORDER, order(&set.key));
    let data = match &set.data {
        DataType::None => None,
        DataType::Values(fields) => Some((order(fields), type_of::fields(fields, family))),
        DataType::Verdict => Some((NO_ORDER, type_of::verdict())),
    };
    if let Some((order, _)) = data {
        type_of::number(&mut out, DATA_ORDER, order);
    }
    type_of::entry(&mut out, KEY_TYPE_OF, &type_of::fields(&set.key, family));
    if let Some((_, data)) = data {
        type_of::entry(&mut out, DATA_TYPE_OF, &data);
        type_of::number(&mut out, DATA_INTERVAL, 0);
    }
    out
}
