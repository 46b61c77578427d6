//! Suppliers: the adapters against fakes that the vendors' own SDKs accept, the rules by which doubts are resolved, and
//! what the operator does with them.

mod airalo;
mod conformance;
mod doubts;
mod esim_access;
mod fakes;
mod fire;
mod live;
mod operating;
mod selling;
mod usage;
