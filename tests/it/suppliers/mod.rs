//! Suppliers: the adapters against fakes that the vendors' own SDKs accept, the rules by which doubts are resolved, and
//! what the operator does with them.

mod airalo;
mod conformance;
mod currency;
mod doubts;
mod esim_access;
mod fakes;
mod operating;
mod selling;
mod usage;
