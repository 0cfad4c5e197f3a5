//! The parts of the agent that do not depend on its mode.

pub(crate) mod report;
pub(crate) mod upstream;
pub(crate) mod view;
pub(crate) mod view_source;
