//! Tables of sources, destinations and what becomes of the packet, on a small cluster.

mod addresses;
mod beside;
mod cells;
mod filter;
mod pods;
mod policies;
mod world;

pub(crate) use self::world::World;
