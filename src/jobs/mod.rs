//! Work that nobody asked for just now. Each job is safe to run on many instances at once.

mod mail;
mod recover;
mod resting;
mod scan;
mod settle;
mod watch;

use tokio_util::sync::CancellationToken;

use crate::app::App;

/// Starts every job; they end when `stop` is cancelled.
pub fn start(app: &App, stop: &CancellationToken) {
    app.tasks.spawn(watch::run(app.clone(), stop.clone()));
    app.tasks.spawn(recover::run(app.clone(), stop.clone()));
    app.tasks.spawn(mail::run(app.clone(), stop.clone()));
    for chain in app.chains.values() {
        app.tasks.spawn(scan::run(app.clone(), chain.clone(), stop.clone()));
        app.tasks.spawn(resting::run(app.clone(), chain.clone(), stop.clone()));
    }
    for network in app.settler.iter().flat_map(|settler| settler.posts.keys()) {
        app.tasks.spawn(settle::run(app.clone(), *network, stop.clone()));
    }
}
