//! `/account`: where a buyer signs in by a mailed code, and then sees the wallet, orders and agents' tokens, buys from the
//! wallet, pays in, and takes the data along. Pages only render: what may be done is decided in `ops`.

pub mod agents;
pub mod buy;
pub mod frame;
pub mod money;
pub mod orders;
pub mod overview;
pub mod settings;
pub mod sign_in;
