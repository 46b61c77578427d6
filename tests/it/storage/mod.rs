//! Both databases: what is the same on them, what is special to one, and what is kept how long.

mod event_places;
mod leases;
mod parity;
mod pg_failover;
mod pg_guarded;
mod pg_readonly;
mod reads;
mod retention;
mod second_factors;
mod sqlite_log;
mod sqlite_serving;
