//! Settings as arguments of a command line, and back. The arguments are part of the pod, so a
//! person reads them in `kubectl describe pod`.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use thiserror::Error;

use super::check::{Problem, Setting, list};
use super::{Exempt, Inbound, Mark, Method, Outbound, PortRange, Ports, Routing, Settings};

/// Why arguments are not settings.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArgumentError {
    /// There is no such option.
    #[error("there is no option {0}: use {flags}", flags = list(&Setting::ALL.map(Setting::flag)))]
    Unknown(String),
    /// An option has no value.
    #[error("{0} has no value: write {0}=VALUE")]
    NoValue(&'static str),
    /// An option is given twice.
    #[error(
        "{flag}={value}: the option is already set to {before}: give it once, with a list if it takes one"
    )]
    Repeated {
        /// The option.
        flag: &'static str,
        /// The second value.
        value: String,
        /// The first value.
        before: String,
    },
    /// A value is not of the option's type.
    #[error("{flag}={value}: {part:?} is not valid: {expected}")]
    Value {
        /// The option.
        flag: &'static str,
        /// The value.
        value: String,
        /// The part of the value that cannot be read.
        part: String,
        /// The way out.
        expected: String,
    },
    /// An option needs another one.
    #[error("{flag}={value}: this needs {needed} too")]
    Needs {
        /// The option.
        flag: &'static str,
        /// Its value.
        value: String,
        /// The missing option.
        needed: &'static str,
    },
    /// The settings cannot work.
    #[error(transparent)]
    Problem(#[from] Problem),
}

impl Settings {
    /// Renders the settings as `--option=value`. Lists without an item and the default of all ports
    /// are left out.
    pub fn arguments(&self) -> Vec<String> {
        let Self { inbound, outbound, exempt, routing } = self;
        let mut out = Arguments(Vec::new());
        if let Some(Inbound { method, port, ports, except_ports }) = inbound {
            out.push(Setting::InboundMethod, method.name());
            out.push(Setting::InboundPort, port);
            out.ports(Setting::InboundPorts, ports);
            out.list(Setting::InboundExceptPorts, except_ports);
        }
        if let Some(Outbound { port, destinations, ports, except_destinations, except_ports }) = outbound {
            out.push(Setting::OutboundPort, port);
            out.list(Setting::OutboundDestinations, destinations);
            out.ports(Setting::OutboundPorts, ports);
            out.list(Setting::OutboundExceptDestinations, except_destinations);
            out.list(Setting::OutboundExceptPorts, except_ports);
        }
        let Exempt { uids, gids, marks, net_cls, cgroups } = exempt;
        out.list(Setting::ExemptUids, uids);
        out.list(Setting::ExemptGids, gids);
        out.list(Setting::ExemptMarks, marks);
        out.list(Setting::ExemptNetCls, &net_cls.iter().map(|id| format!("{id:#x}")).collect::<Vec<_>>());
        out.list(Setting::ExemptCgroups, cgroups);
        out.push(Setting::Mark, routing.mark);
        out.push(Setting::Table, routing.table);
        out.0
    }

    /// Reads settings from arguments, `--option=value` or `--option value`, and checks them.
    pub fn parse<A: Into<String>>(arguments: impl IntoIterator<Item = A>) -> Result<Self, ArgumentError> {
        let values = Values::read(arguments.into_iter().map(Into::into))?;
        let settings = Self {
            inbound: values.inbound()?,
            outbound: values.outbound()?,
            exempt: values.exempt()?,
            routing: values.routing()?,
        };
        settings.check()?;
        Ok(settings)
    }
}

struct Arguments(Vec<String>);

impl Arguments {
    fn push(&mut self, setting: Setting, value: impl fmt::Display) {
        self.0.push(format!("{}={value}", setting.flag()));
    }

    fn list(&mut self, setting: Setting, items: &[impl fmt::Display]) {
        if !items.is_empty() {
            self.push(setting, list(items));
        }
    }

    fn ports(&mut self, setting: Setting, ports: &Ports) {
        if let Ports::Some(ranges) = ports {
            self.push(setting, list(ranges));
        }
    }
}

/// The values of the options that are given.
struct Values(BTreeMap<&'static str, String>);

impl Values {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, ArgumentError> {
        let mut values = BTreeMap::new();
        while let Some(argument) = arguments.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (argument.as_str(), None),
            };
            let flag = Setting::ALL.map(Setting::flag).into_iter().find(|flag| *flag == name);
            let flag = flag.ok_or_else(|| ArgumentError::Unknown(argument.clone()))?;
            let value = value
                .or_else(|| arguments.next().filter(|next| !next.starts_with("--")))
                .ok_or(ArgumentError::NoValue(flag))?;
            if let Some(before) = values.get(flag).cloned() {
                return Err(ArgumentError::Repeated { flag, value, before });
            }
            values.insert(flag, value);
        }
        Ok(Self(values))
    }

    fn inbound(&self) -> Result<Option<Inbound>, ArgumentError> {
        let Some(port) = self.one(Setting::InboundPort, port)? else {
            let others = [Setting::InboundMethod, Setting::InboundPorts, Setting::InboundExceptPorts];
            return self.none_of(&others, Setting::InboundPort);
        };
        let Some(method) = self.one(Setting::InboundMethod, method)? else {
            return self.none_of(&[Setting::InboundPort], Setting::InboundMethod);
        };
        Ok(Some(Inbound {
            method,
            port,
            ports: self.ports(Setting::InboundPorts)?,
            except_ports: self.all(Setting::InboundExceptPorts, range)?,
        }))
    }

    fn outbound(&self) -> Result<Option<Outbound>, ArgumentError> {
        let Some(port) = self.one(Setting::OutboundPort, port)? else {
            let others = [
                Setting::OutboundDestinations,
                Setting::OutboundPorts,
                Setting::OutboundExceptDestinations,
                Setting::OutboundExceptPorts,
            ];
            return self.none_of(&others, Setting::OutboundPort);
        };
        Ok(Some(Outbound {
            port,
            destinations: self.all(Setting::OutboundDestinations, network)?,
            ports: self.ports(Setting::OutboundPorts)?,
            except_destinations: self.all(Setting::OutboundExceptDestinations, network)?,
            except_ports: self.all(Setting::OutboundExceptPorts, range)?,
        }))
    }

    fn exempt(&self) -> Result<Exempt, ArgumentError> {
        Ok(Exempt {
            uids: self.all(Setting::ExemptUids, id)?,
            gids: self.all(Setting::ExemptGids, id)?,
            marks: self.all(Setting::ExemptMarks, mark)?,
            net_cls: self.all(Setting::ExemptNetCls, class)?,
            cgroups: self.all(Setting::ExemptCgroups, |text| Ok(text.to_owned()))?,
        })
    }

    fn routing(&self) -> Result<Routing, ArgumentError> {
        Ok(Routing {
            mark: self.one(Setting::Mark, mark)?.unwrap_or(Routing::DEFAULT.mark),
            table: self.one(Setting::Table, table)?.unwrap_or(Routing::DEFAULT.table),
        })
    }

    /// Nothing is redirected in this direction, so nothing may be said about it.
    fn none_of<T>(&self, settings: &[Setting], needed: Setting) -> Result<Option<T>, ArgumentError> {
        let given = settings.iter().find_map(|each| Some((each.flag(), self.0.get(each.flag())?)));
        match given {
            None => Ok(None),
            Some((flag, value)) => {
                Err(ArgumentError::Needs { flag, value: value.clone(), needed: needed.flag() })
            }
        }
    }

    fn ports(&self, setting: Setting) -> Result<Ports, ArgumentError> {
        match self.0.get(setting.flag()).map(String::as_str) {
            None | Some("all") => Ok(Ports::All),
            Some(_) => Ok(Ports::Some(self.all(setting, range)?)),
        }
    }

    fn one<T>(&self, setting: Setting, read: Read<T>) -> Result<Option<T>, ArgumentError> {
        let value = self.0.get(setting.flag());
        value.map(|value| part(setting, value, value, read)).transpose()
    }

    fn all<T>(&self, setting: Setting, read: Read<T>) -> Result<Vec<T>, ArgumentError> {
        let Some(value) = self.0.get(setting.flag()) else { return Ok(Vec::new()) };
        value.split(',').map(|each| part(setting, value, each.trim(), read)).collect()
    }
}

/// Reads one item of a value; an error says what is expected.
type Read<T> = fn(&str) -> Result<T, String>;

fn part<T>(setting: Setting, value: &str, part: &str, read: Read<T>) -> Result<T, ArgumentError> {
    read(part).map_err(|expected| ArgumentError::Value {
        flag: setting.flag(),
        value: value.to_owned(),
        part: part.to_owned(),
        expected,
    })
}

fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "write a port from 1 to 65535".to_owned())
}

fn range(text: &str) -> Result<PortRange, String> {
    PortRange::from_str(text).map_err(|error| error.to_string())
}

fn method(text: &str) -> Result<Method, String> {
    let found = Method::ALL.into_iter().find(|method| method.name() == text);
    found.ok_or_else(|| "write TPROXY or REDIRECT".to_owned())
}

/// A network, or one address.
fn network(text: &str) -> Result<IpNet, String> {
    let expected = || "write a network such as 10.0.0.0/8 or fd00::/8, or an address".to_owned();
    text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).map_err(|_| expected())
}

fn id(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "write a numeric id such as 1337".to_owned())
}

fn table(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "write the number of a routing table such as 15006".to_owned())
}

fn class(text: &str) -> Result<u32, String> {
    number(text).ok_or_else(|| "write a class id such as 0x100001".to_owned())
}

/// `VALUE/MASK`, or a value all of whose bits count.
fn mark(text: &str) -> Result<Mark, String> {
    let (value, mask) = match text.split_once('/') {
        Some((value, mask)) => (number(value), number(mask)),
        None => (number(text), Some(u32::MAX)),
    };
    let read = value.zip(mask).map(|(value, mask)| Mark { value, mask });
    read.ok_or_else(|| "write a mark such as 0x1, or one under a mask such as 0x1/0xff".to_owned())
}

/// A number in decimal, or in hexadecimal after `0x`.
fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests;
