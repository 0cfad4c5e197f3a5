//! Policy routing of a network namespace: the rule and the route of a pod's redirect.

use isp_dataplane::netlink::{Failure, FoundRouting, Request, errno};
use isp_dataplane::redirect::LocalDelivery;
use thiserror::Error;

use crate::socket::{Asked, Socket, SocketError};

/// How often the lists are asked for because they changed meanwhile.
const ATTEMPTS: u32 = 10;

/// Why the routing could not be read or changed.
#[derive(Debug, Error)]
pub enum RoutingError {
    /// The kernel refused one part of it.
    #[error("the kernel refused to {action}: {failure}{hint}", hint = hint(.failure))]
    Refused {
        /// The change.
        action: &'static str,
        /// The kernel's reason.
        failure: Failure,
    },
    /// The kernel did not answer usefully.
    #[error(transparent)]
    Socket(#[from] SocketError),
}

fn hint(failure: &Failure) -> &'static str {
    match failure.errno {
        errno::EACCES => {
            " (IPv6 is disabled on the loopback interface only: enable it there, or disable it everywhere)"
        }
        errno::ENETDOWN => " (the loopback interface is down: run `ip link set lo up` first)",
        errno::EAFNOSUPPORT | errno::EOPNOTSUPP => {
            " (the kernel lacks policy routing, CONFIG_IP_MULTIPLE_TABLES)"
        }
        _ => "",
    }
}

/// A socket for policy routing.
pub struct PolicyRouting {
    socket: Socket,
}

impl PolicyRouting {
    /// Opens the socket.
    pub fn open() -> Result<Self, RoutingError> {
        Ok(Self { socket: Socket::open_route()? })
    }

    /// Finds the rule and the route.
    pub fn find(&mut self, delivery: &LocalDelivery) -> Result<FoundRouting, RoutingError> {
        for _ in 0..ATTEMPTS {
            let mut found = FoundRouting::default();
            let first = self.socket.reserve_sequences(2);
            let mut consistent = true;
            for (sequence, query) in (first..).zip(FoundRouting::queries(delivery.family, first)) {
                let asked = self.socket.ask(&query, sequence, |message| found.read(message, delivery))?;
                consistent &= asked == Asked::Consistent;
            }
            if consistent {
                return Ok(found);
            }
        }
        Err(SocketError::Interrupted { attempts: ATTEMPTS }.into())
    }

    /// Adds the route, and then the rule that leads to it. What exists already stays.
    pub fn add(&mut self, delivery: &LocalDelivery) -> Result<(), RoutingError> {
        self.change(Request::AddRoute, delivery, "add the local route", &[])?;
        self.change(Request::AddRule, delivery, "add the rule for the mark", &[errno::EEXIST])
    }

    /// Deletes the rule, and then the route, as far as they exist.
    pub fn remove(&mut self, delivery: &LocalDelivery) -> Result<(), RoutingError> {
        self.change(Request::DeleteRule, delivery, "delete the rule for the mark", &[errno::ENOENT])?;
        self.change(Request::DeleteRoute, delivery, "delete the local route", &[errno::ESRCH, errno::ENOENT])
    }

    fn change(
        &mut self,
        request: Request,
        delivery: &LocalDelivery,
        action: &'static str,
        fine: &[i32],
    ) -> Result<(), RoutingError> {
        let sequence = self.socket.next_sequence();
        match self.socket.ask(&request.write(delivery, sequence), sequence, |_| Ok(())) {
            Ok(_) => Ok(()),
            Err(SocketError::Refused(failure)) if fine.contains(&failure.errno) => Ok(()),
            Err(SocketError::Refused(failure)) => Err(RoutingError::Refused { action, failure }),
            Err(error) => Err(error.into()),
        }
    }
}
