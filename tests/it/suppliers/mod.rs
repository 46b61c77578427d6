//! Suppliers: the adapters against fakes that the vendors' own SDKs accept, the rules by which doubts are resolved, and
//! what the operator does with them.

mod airalo;
mod changing;
mod conformance;
mod currency;
mod doubts;
mod esim_access;
mod fakes;
mod fire;
mod iccids;
mod live;
mod messages;
mod operating;
mod regions;
mod selling;
mod usage;
