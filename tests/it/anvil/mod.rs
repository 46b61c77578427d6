//! Deposits against a real EVM node (anvil) and a real token. Most tests move the scanner by hand (`desk.rs`) and
//! know exactly what must have happened after which block; `processes.rs` lets real servers run and die. The tests
//! of checkouts (`till.rs`, `checkouts.rs`, `signed_*.rs`) come through the door, with everything running behind it.

/// Tests that have a node of their own, on each database; `by_hand!` and `at_till!` say what stands before it.
macro_rules! before_node {
    ($counter:ident: $($(#[$doc:meta])* async fn $name:ident($it:ident) $(with { $($field:ident: $value:expr),* $(,)? })? $body:block)*) => {$(
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            $(#[$doc])*
            async fn check($it: &mut $counter) $body

            fn check_on(db: crate::support::harness::Db) {
                let setup = Setup { $($($field: $value,)*)? ..Setup::default() };
                $counter::run(db, setup, async |it| check(it).await);
            }
            crate::support::harness::each_database!(check_on, "needs anvil");
        }
    )*};
}
pub(crate) use before_node;

/// The same on SQLite alone, of what has nothing to do with databases.
macro_rules! before_nodes {
    ($($(#[$doc:meta])* async fn $name:ident($it:ident) $(with { $($field:ident: $value:expr),* $(,)? })? $body:block)*) => {$(
        $(#[$doc])*
        #[test]
        #[ignore = "needs anvil"]
        fn $name() {
            let setup = Setup { $($($field: $value,)*)? ..Setup::default() };
            Desk::run(crate::support::harness::Db::Sqlite, setup, async |$it: &mut Desk| $body);
        }
    )*};
}

mod bad_nodes;
mod checkouts;
mod clock;
mod credit;
mod crowd;
mod desk;
mod dust;
mod five_nodes;
mod forgotten;
pub mod node;
mod nodes;
mod processes;
pub mod proxy;
mod signed_doubts;
mod signed_keys;
mod signed_payments;
mod signed_processes;
mod signed_remote;
mod signed_stories;
mod signed_tools;
mod till;
mod transfers;
