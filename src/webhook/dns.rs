//! Where a name leads. Tests put a script in its place.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;
use tokio::time::timeout;

pub trait Dns: Send + Sync {
    /// `ErrorKind::ResourceBusy` when it was not asked at all.
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>>;
}

/// The system's resolver cannot be stopped: a question holds a thread until its name server answers or gives up, and
/// these threads are shared with all else that blocks. So names that never answer may hold some of them, and no more.
const QUESTIONS: usize = 128;
/// How long a question waits for its turn: less than a try may take.
const PATIENCE: Duration = Duration::from_secs(3);

pub struct SystemDns {
    turns: Arc<Semaphore>,
}

impl Default for SystemDns {
    fn default() -> SystemDns {
        SystemDns { turns: Arc::new(Semaphore::new(QUESTIONS)) }
    }
}

impl Dns for SystemDns {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        let host = host.to_string();
        Box::pin(async move {
            let turn = timeout(PATIENCE, self.turns.clone().acquire_owned()).await;
            let turn = turn.map_err(|_| io::ErrorKind::ResourceBusy)?.map_err(io::Error::other)?;
            // A task of its own, so that the turn is held for as long as the thread is, also when nobody waits any more.
            let asking = tokio::spawn(async move {
                let found = tokio::net::lookup_host((host, port)).await.map(Iterator::collect);
                drop(turn);
                found
            });
            asking.await.map_err(io::Error::other)?
        })
    }
}
