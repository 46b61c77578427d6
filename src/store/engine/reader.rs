//! Reads, never behind writers. On SQLite a short read runs in place on its thread's own connection and a long
//! one on the blocking pool; on PostgreSQL all run on reader threads, each with its own session.

use std::path::{Path, PathBuf};

use crossbeam_channel::{Sender, unbounded};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::postgres::Session;
use super::sqlite::{NO_WAIT, READ_WAIT, with_reader};
use super::still;
use super::tx::{Body, Db, Tx, sqlite_error};
use super::writer::survive;
use crate::error::{Error, Result};

type Task = Box<dyn FnOnce(&mut Option<Session>, &str) + Send>;

pub enum Reader {
    Sqlite { path: PathBuf },
    Postgres { tasks: Sender<Task> },
}

/// What the statements of a read see of the database.
#[derive(Clone, Copy, PartialEq, Eq)]
enum View {
    /// Each the state of its own moment.
    Each,
    /// All one state, looked up by key.
    Consistent,
    /// All one state, and much of it.
    Snapshot,
}

impl Reader {
    pub fn sqlite(path: PathBuf) -> Reader {
        Reader::Sqlite { path }
    }

    pub fn postgres(url: &str, threads: usize) -> Result<Reader> {
        let (tasks, queue) = unbounded::<Task>();
        for number in 0..threads {
            let (queue, url, name) = (queue.clone(), url.to_string(), format!("reader-{number}"));
            let work = {
                let name = name.clone();
                move || {
                    let mut session = None;
                    while let Ok(task) = queue.recv() {
                        // What a panic left of a session is not trusted.
                        if survive(&name, || task(&mut session, &url)).is_none() {
                            session = None;
                        }
                    }
                }
            };
            std::thread::Builder::new().name(name).spawn(work).map_err(Error::fault)?;
        }
        Ok(Reader::Postgres { tasks })
    }

    /// A short read: a look-up by key or one page.
    pub async fn read<T: Send + 'static>(&self, body: impl Body<T>) -> Result<T> {
        match self {
            Reader::Sqlite { path } => {
                in_place(path, move |connection| body(&mut Tx::new(Db::Sqlite(connection), false))).await
            }
            Reader::Postgres { tasks } => on_thread(tasks, View::Each, body).await,
        }
    }

    /// A few short reads that must fit together: all see the database as of one moment.
    pub async fn read_consistent<T: Send + 'static>(&self, body: impl Body<T>) -> Result<T> {
        match self {
            Reader::Sqlite { path } => {
                in_place(path, move |connection| as_of_one_moment(connection, &body)).await
            }
            Reader::Postgres { tasks } => on_thread(tasks, View::Consistent, body).await,
        }
    }

    /// A read that goes through much of what was ever written, over one consistent state: verification, reports. On
    /// SQLite it has a copy of its own, or the log would grow all the while.
    pub async fn study<T: Send + 'static>(&self, body: impl Body<T>) -> Result<T> {
        match self {
            Reader::Sqlite { path } => {
                let path = path.clone();
                let work = move || body(&mut Tx::new(Db::Sqlite(&still::picture(&path)?), false));
                tokio::task::spawn_blocking(work).await.map_err(Error::fault)?
            }
            Reader::Postgres { tasks } => on_thread(tasks, View::Snapshot, body).await,
        }
    }

    /// A longer read over one consistent state, once through a table at most: lists, the catalog.
    pub async fn snapshot<T: Send + 'static>(&self, body: impl Body<T>) -> Result<T> {
        match self {
            Reader::Sqlite { path } => {
                let path = path.clone();
                let work = move || {
                    with_reader(&path, READ_WAIT, |connection| {
                        let found = as_of_one_moment(connection, &body);
                        // Who reads much reads seldom: the pages would only fill memory.
                        connection.execute_batch("PRAGMA shrink_memory").map_err(sqlite_error)?;
                        found
                    })
                };
                tokio::task::spawn_blocking(work).await.map_err(Error::fault)?
            }
            Reader::Postgres { tasks } => on_thread(tasks, View::Snapshot, body).await,
        }
    }
}

/// A short read on this thread; one that would have to wait does so on the blocking pool.
async fn in_place<T, F>(path: &Path, read: F) -> Result<T>
where
    T: Send + 'static,
    F: Fn(&Connection) -> Result<T> + Send + 'static,
{
    match with_reader(path, NO_WAIT, &read) {
        Err(error) if error.is_conflict() => {
            let path = path.to_path_buf();
            let work = move || with_reader(&path, READ_WAIT, read);
            tokio::task::spawn_blocking(work).await.map_err(Error::fault)?
        }
        done => done,
    }
}

fn as_of_one_moment<T>(connection: &Connection, body: impl Fn(&mut Tx) -> Result<T>) -> Result<T> {
    let transaction = connection.unchecked_transaction().map_err(sqlite_error)?;
    body(&mut Tx::new(Db::Sqlite(&transaction), false))
}

async fn on_thread<T: Send + 'static>(tasks: &Sender<Task>, view: View, body: impl Body<T>) -> Result<T> {
    let (reply, answer) = oneshot::channel();
    let task: Task = Box::new(move |session, url| {
        let mut outcome = attempt(session, url, view, &body);
        // A session that died while it was idle says so only when it is used; a read may simply be asked again.
        if outcome.as_ref().is_err_and(Error::is_lost) {
            *session = None;
            outcome = attempt(session, url, view, &body);
        }
        let _ = reply.send(outcome);
    });
    tasks.send(task).map_err(|_| Error::fault("the readers have stopped"))?;
    answer.await.map_err(|_| Error::fault("a read panicked; the panic message is in the log above"))?
}

fn attempt<T>(
    session: &mut Option<Session>,
    url: &str,
    view: View,
    body: &impl Fn(&mut Tx) -> Result<T>,
) -> Result<T> {
    if session.is_none() {
        *session = Some(Session::connect(url)?);
    }
    let session = session.as_mut().expect("connected above");
    match view {
        View::Each => body(&mut Tx::new(Db::Postgres(session), false)),
        View::Consistent => in_transaction(session, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", body),
        View::Snapshot => session.patiently(|session| in_transaction(session, SNAPSHOT, body)),
    }
}

const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0; \
     SET LOCAL enable_seqscan = on; SET LOCAL max_parallel_workers_per_gather = DEFAULT; \
     SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on; SET LOCAL plan_cache_mode = auto";

fn in_transaction<T>(session: &mut Session, begin: &str, body: &impl Fn(&mut Tx) -> Result<T>) -> Result<T> {
    session.batch(begin)?;
    let outcome = body(&mut Tx::new(Db::Postgres(session), false));
    session.batch("ROLLBACK")?;
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::engine::tx::Sql;

    const COUNT: Sql = Sql { text: "SELECT COUNT(*) FROM kept", only: None };

    /// One thread does it all here: if the read held it while it waited, the lock would never go.
    #[tokio::test]
    async fn a_read_that_must_wait_leaves_its_thread_to_others() {
        let path = std::env::temp_dir().join(format!("simgate-reader-{}.db", std::process::id()));
        let owner = Connection::open(&path).unwrap();
        let take =
            "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; CREATE TABLE kept (n INTEGER)";
        owner.execute_batch(take).unwrap();
        let reader = Reader::sqlite(path.clone());
        let refused = with_reader(&path, NO_WAIT, |connection| {
            Tx::new(Db::Sqlite(connection), false).one::<i64>(COUNT, &[])
        });
        assert!(refused.is_err_and(|error| error.is_conflict()));
        let (plain, consistent, _) = tokio::join!(
            reader.read(|tx| tx.one::<i64>(COUNT, &[])),
            reader.read_consistent(|tx| tx.one::<i64>(COUNT, &[])),
            async { owner.close().unwrap() },
        );
        assert_eq!((plain.unwrap(), consistent.unwrap()), (0, 0));
        std::fs::remove_file(&path).unwrap();
    }
}
