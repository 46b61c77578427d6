//! The one writer loop, the same for both databases: take a job, run it, go on while jobs are queued, COMMIT once, and
//! only then answer all of them. Many orders share one durable commit; that makes it fast.
//!
//! There are no savepoints. A job decides before it writes, so a refusal has nothing to undo. When a job fails
//! after it wrote, its group is rolled back and every job of it runs again alone. A job may therefore run twice,
//! also after a COMMIT whose answer was lost: no clock, no randomness, no I/O inside.
//!
//! On PostgreSQL, where every statement costs a round trip, jobs of one kind may share their statements
//! (`WriteJob::run_batched`).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use metrics::{counter, gauge, histogram};
use tokio::sync::oneshot;

use super::checkpoints::{Checkpoints, LogSize};
use super::postgres::Session;
use super::room::Room;
use super::sqlite;
use super::tx::{Db, Tx, sqlite_error};
use crate::domain::ids::AccountNo;
use crate::domain::refusal::Refusal;
use crate::error::{Error, Fault, FaultKind, Result};

const SQLITE_GROUP: usize = 256;
const POSTGRES_GROUP: usize = 32;
const CONFLICT_TRIES: u32 = 10;
const RECONNECT_FOR: Duration = Duration::from_secs(5);
/// How long an ordinary job may wait before it is refused: its caller has given up by then.
const JOB_DEADLINE: Duration = Duration::from_secs(10);

/// A business write. A plain one is a function over `Tx`.
pub trait WriteJob: Send + Sized + 'static {
    type Answer: Send;
    /// Whether `run_batched` does anything.
    const SHARES: bool = false;
    /// One lane for all jobs of this kind, whichever wallets they move: they wait in memory instead of on a row's lock,
    /// and form one large group.
    const LANE: Option<i64> = None;

    fn run(&self, tx: &mut Tx) -> Result<Self::Answer>;

    /// Handles the simple jobs of a group of one kind in as few statements as it can. A job that gets `None` has
    /// written nothing: `run` does it afterwards, in the same transaction. PostgreSQL only.
    fn run_batched(_: &mut Tx, group: &[&Self]) -> Result<Vec<Option<Self::Answer>>> {
        Ok(group.iter().map(|_| None).collect())
    }
}

impl<T: Send, F: Fn(&mut Tx) -> Result<T> + Send + 'static> WriteJob for F {
    type Answer = T;

    fn run(&self, tx: &mut Tx) -> Result<T> {
        self(tx)
    }
}

/// A write with its caller, hidden behind its answer's type.
trait Job: Any + Send {
    /// Runs from the start, again if need be. `Err` means the transaction must be rolled back.
    fn run(&mut self, tx: &mut Tx) -> Result<()>;
    /// Runs together with the jobs of its kind among `others`.
    fn run_batched(&mut self, tx: &mut Tx, others: &mut [Queued]) -> Result<()>;
    /// Whether it can run together with others, and has not done so yet.
    fn would_share(&self) -> bool;
    fn is_done(&self) -> bool;
    fn answer(self: Box<Self>);
    fn fail(self: Box<Self>, error: Error);
}

struct Typed<W: WriteJob> {
    work: W,
    batched: bool,
    outcome: Option<Result<W::Answer>>,
    reply: oneshot::Sender<Result<W::Answer>>,
}

/// Runs the work of a thread. `None` when it panicked: then the caller starts it again.
pub(super) fn survive<T>(name: &str, work: impl FnOnce() -> T) -> Option<T> {
    let outcome = catch_unwind(AssertUnwindSafe(work)).ok();
    if outcome.is_none() {
        counter!("simgate_job_panics_total", "job" => name.to_string()).increment(1);
        tracing::error!(thread = name, "a thread panicked and goes on; the panic message is above");
    }
    outcome
}

fn unharmed<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Error::fault("a write panicked; the panic message is in the log above")))
}

impl<W: WriteJob> Job for Typed<W> {
    fn run(&mut self, tx: &mut Tx) -> Result<()> {
        self.outcome = None;
        let result = unharmed(|| self.work.run(tx));
        match result {
            Err(Error::Refused(_)) if !tx.wrote() => {}
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        self.outcome = Some(result);
        Ok(())
    }

    fn run_batched(&mut self, tx: &mut Tx, others: &mut [Queued]) -> Result<()> {
        let mut kin: Vec<&mut Typed<W>> = vec![self];
        kin.extend(others.iter_mut().filter_map(|other| (&mut *other.job as &mut dyn Any).downcast_mut()));
        let group: Vec<&W> = kin.iter().map(|job| &job.work).collect();
        let answers = unharmed(|| W::run_batched(tx, &group))?;
        for (job, answer) in kin.into_iter().zip(answers) {
            job.batched = true;
            job.outcome = answer.map(Ok);
        }
        Ok(())
    }

    fn would_share(&self) -> bool {
        W::SHARES && !self.batched
    }

    fn is_done(&self) -> bool {
        self.outcome.is_some()
    }

    fn answer(self: Box<Self>) {
        let outcome = self.outcome.unwrap_or_else(|| Err(Error::fault("a write was answered before it ran")));
        // The caller may have gone; the work is done anyway.
        let _ = self.reply.send(outcome);
    }

    fn fail(self: Box<Self>, error: Error) {
        let _ = self.reply.send(Err(error));
    }
}

struct Queued {
    key: i64,
    deadline: Option<Instant>,
    job: Box<dyn Job>,
}

/// Locks the rows of these keys, in the common order.
pub type LockAll = fn(&mut Tx, &[AccountNo]) -> Result<()>;

/// The database that a lane writes to.
pub enum Target {
    /// With a log size for a server, which keeps the log in shape; a command does not.
    Sqlite {
        path: PathBuf,
        log: Option<LogSize>,
    },
    Postgres {
        url: String,
    },
}

enum Connection {
    Sqlite { connection: rusqlite::Connection, checkpoints: Option<Arc<Checkpoints>> },
    Postgres { url: String, session: Option<Box<Session>> },
}

impl Connection {
    fn tx(&mut self, rerun: bool) -> Result<Tx<'_>> {
        Ok(match self {
            Connection::Sqlite { connection, .. } => Tx::new(Db::Sqlite(connection), rerun),
            Connection::Postgres { url, session } => {
                if session.is_none() {
                    *session = Some(Box::new(Session::connect(url)?));
                }
                Tx::new(Db::Postgres(session.as_mut().expect("connected above")), rerun)
            }
        })
    }

    fn command(&mut self, text: &'static str) -> Result<()> {
        match self {
            Connection::Sqlite { connection, .. } => {
                let mut statement = connection.prepare_cached(text).map_err(sqlite_error)?;
                statement.execute([]).map(drop).map_err(sqlite_error)
            }
            Connection::Postgres { url, session } => {
                if session.is_none() {
                    *session = Some(Box::new(Session::connect(url)?));
                }
                session.as_mut().expect("connected above").batch(text)
            }
        }
    }

    fn begin(&mut self) -> Result<()> {
        match self {
            Connection::Sqlite { .. } => self.command("BEGIN IMMEDIATE"),
            Connection::Postgres { .. } => self.command("BEGIN"),
        }
    }

    /// Maintenance that is best done between two groups.
    fn tidy(&self) {
        if let Connection::Sqlite { connection, checkpoints: Some(checkpoints) } = self
            && checkpoints.is_my_turn()
            && let Err(error) = sqlite::checkpoint(connection)
        {
            tracing::debug!(%error, "the log could not be emptied; trying again soon");
        }
    }

    /// Leaves no transaction open, whatever happened. A session that is lost, can no longer write or cannot even roll
    /// back is replaced.
    fn recover(&mut self, error: &Error) {
        let spoilt = error.is_lost() || self.command("ROLLBACK").is_err();
        if let (Connection::Postgres { session, .. }, true) = (self, spoilt) {
            *session = None;
        }
    }
}

struct Lane {
    sender: Sender<Queued>,
    load: Arc<Load>,
    thread: std::thread::JoinHandle<()>,
}

/// How many jobs a lane has.
#[derive(Default)]
struct Load {
    waiting: AtomicUsize,
    running: AtomicUsize,
}

impl Lane {
    fn queue<W: WriteJob>(&self, key: i64, within: Option<Duration>, work: W) -> Result<Pending<W::Answer>> {
        let (reply, answer) = oneshot::channel();
        let deadline = within.map(|within| Instant::now() + within);
        let job = Box::new(Typed { work, batched: false, outcome: None, reply });
        self.load.waiting.fetch_add(1, Ordering::Relaxed);
        self.sender
            .send(Queued { key, deadline, job })
            .map_err(|_| Error::fault("the writer has stopped"))?;
        Ok(Pending(answer))
    }
}

/// An answer that comes when its group is committed.
pub struct Pending<T>(oneshot::Receiver<Result<T>>);

impl<T> Pending<T> {
    pub async fn answer(self) -> Result<T> {
        self.0.await.map_err(|_| Error::fault("the writer stopped before it answered"))?
    }
}

pub struct Writer {
    lanes: Vec<Lane>,
    /// How many ordinary jobs may wait in one lane.
    limit: usize,
}

impl Writer {
    pub fn start(targets: Vec<Target>, limit: usize, room: &Arc<Room>, lock_all: LockAll) -> Result<Writer> {
        let mut lanes = Vec::new();
        for (number, target) in targets.into_iter().enumerate() {
            let (sender, receiver) = unbounded();
            let load = Arc::<Load>::default();
            let (mut connection, group) = match target {
                Target::Sqlite { path, log } => {
                    let connection = sqlite::open_writer(&path)?;
                    if let Some(size) = log {
                        sqlite::limit_log(&connection, size.most())?;
                    }
                    let checkpoints = log.map(|size| Checkpoints::start(path, size)).transpose()?;
                    (Connection::Sqlite { connection, checkpoints }, SQLITE_GROUP)
                }
                Target::Postgres { url } => (Connection::Postgres { url, session: None }, POSTGRES_GROUP),
            };
            let (of_lane, room, name) = (load.clone(), room.clone(), format!("writer-{number}"));
            let work = {
                let name = name.clone();
                // Callers of the failed group are told that it stopped; for all others the lane goes on.
                move || {
                    while survive(&name, || {
                        run_lane(&mut connection, &receiver, &of_lane, group, &room, lock_all)
                    })
                    .is_none()
                    {
                        connection.recover(&Error::fault("a write panicked"));
                    }
                }
            };
            let thread = std::thread::Builder::new().name(name).spawn(work).map_err(Error::fault)?;
            lanes.push(Lane { sender, load, thread });
        }
        Ok(Writer { lanes, limit })
    }

    /// Jobs of one key run in one lane, one after another, unless their kind has its own lane: a hot wallet queues in
    /// memory, not on its row lock.
    pub fn queue<W: WriteJob>(&self, key: i64, must_finish: bool, work: W) -> Result<Pending<W::Answer>> {
        let number = W::LANE.unwrap_or(key) as u64;
        let lane = &self.lanes[number.wrapping_mul(0x9E37_79B9_7F4A_7C15) as usize % self.lanes.len()];
        if !must_finish && lane.load.waiting.load(Ordering::Relaxed) >= self.limit {
            return Err(Refusal::Overloaded.into());
        }
        lane.queue(key, (!must_finish).then_some(JOB_DEADLINE), work)
    }

    /// How many jobs wait or run now.
    pub fn unfinished(&self) -> usize {
        let of = |load: &Load| load.waiting.load(Ordering::Relaxed) + load.running.load(Ordering::Relaxed);
        self.lanes.iter().map(|lane| of(&lane.load)).sum()
    }

    /// Queues the same write in every lane. It waits for its turn like others.
    pub fn try_all(&self, write: fn(&mut Tx) -> Result<()>) -> Result<Vec<Pending<()>>> {
        self.lanes.iter().map(|lane| lane.queue(0, Some(JOB_DEADLINE), write)).collect()
    }

    /// Runs the queued jobs and ends the threads.
    pub fn stop(self) {
        for lane in self.lanes {
            drop(lane.sender);
            if lane.thread.join().is_err() {
                tracing::error!("a writer thread panicked while it was ending");
            }
        }
    }
}

fn run_lane(
    connection: &mut Connection,
    queue: &Receiver<Queued>,
    load: &Load,
    most: usize,
    room: &Room,
    lock_all: LockAll,
) {
    let mut group: Vec<Queued> = Vec::with_capacity(most);
    // A group that panicked runs no more.
    load.running.store(0, Ordering::Relaxed);
    while let Ok(first) = queue.recv() {
        group.push(first);
        while group.len() < most {
            match queue.try_recv() {
                Ok(next) => group.push(next),
                Err(_) => break,
            }
        }
        load.running.store(group.len(), Ordering::Relaxed);
        let waiting = load.waiting.fetch_sub(group.len(), Ordering::Relaxed) - group.len();
        gauge!("simgate_writer_queue_depth").set(waiting as f64);
        histogram!("simgate_writer_group_size").record(group.len() as f64);
        let now = Instant::now();
        let (late, mut ready): (Vec<_>, Vec<_>) =
            group.drain(..).partition(|queued| queued.deadline.is_some_and(|deadline| deadline < now));
        for queued in late {
            queued.job.fail(Refusal::Overloaded.into());
        }
        // Two lanes, or two processes, that lock wallets in the same order cannot deadlock.
        ready.sort_by_key(|queued| queued.key);
        if !ready.is_empty() {
            run_group(connection, ready, room, lock_all);
        }
        load.running.store(0, Ordering::Relaxed);
        connection.tidy();
    }
}

fn run_group(connection: &mut Connection, mut group: Vec<Queued>, room: &Room, lock_all: LockAll) {
    match try_group(connection, &mut group, lock_all) {
        Ok(wrote) => {
            group.into_iter().for_each(|queued| queued.job.answer());
            if wrote {
                room.taken();
            }
        }
        Err(error) => {
            if let Error::Fault(Fault { what, kind }) = &error {
                tracing::debug!(%what, ?kind, jobs = group.len(), "a group of writes is run again, one by one");
            }
            counter!("simgate_writer_reruns_total").increment(group.len() as u64);
            // One limit for all of them, so that a database that is down is not waited for once per job.
            let give_up = Instant::now() + RECONNECT_FOR;
            let mut gone = None;
            for queued in group {
                match &gone {
                    Some(error) => queued.job.fail(Error::clone(error)),
                    None => gone = run_alone(connection, queued, give_up, room),
                }
            }
        }
    }
}

/// Runs a group in one transaction. Answers whether anything was written.
fn try_group(connection: &mut Connection, group: &mut [Queued], lock_all: LockAll) -> Result<bool> {
    let outcome = (|| {
        connection.begin()?;
        let mut wrote = false;
        if let Connection::Postgres { .. } = connection {
            wrote |= run_batched(connection, group, lock_all)?;
        }
        for queued in group.iter_mut().filter(|queued| !queued.job.is_done()) {
            let mut tx = connection.tx(false)?;
            queued.job.run(&mut tx)?;
            wrote |= tx.wrote();
        }
        connection.command("COMMIT")?;
        Ok(wrote)
    })();
    if let Err(error) = &outcome {
        connection.recover(error);
    }
    outcome
}

fn run_batched(connection: &mut Connection, group: &mut [Queued], lock_all: LockAll) -> Result<bool> {
    let sharing = group.iter().filter(|queued| queued.job.would_share()).count();
    if sharing > 0 && sharing < group.len() {
        // Jobs that share run first, so the others would lock their wallets out of order.
        let keys: Vec<AccountNo> = group.iter().map(|queued| AccountNo(queued.key)).collect();
        lock_all(&mut connection.tx(false)?, &keys)?;
    }
    let (mut rest, mut wrote) = (group, false);
    while let Some((first, others)) = rest.split_first_mut() {
        if first.job.would_share() {
            let mut tx = connection.tx(false)?;
            first.job.run_batched(&mut tx, others)?;
            wrote |= tx.wrote();
        }
        rest = others;
    }
    Ok(wrote)
}

/// Runs a job in its own transaction. Answers the error when the connection to the database is lost.
fn run_alone(
    connection: &mut Connection,
    mut queued: Queued,
    give_up: Instant,
    room: &Room,
) -> Option<Error> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let outcome = (|| {
            connection.begin()?;
            let mut tx = connection.tx(true)?;
            queued.job.run(&mut tx)?;
            let wrote = tx.wrote();
            connection.command("COMMIT")?;
            Ok(wrote)
        })();
        let error = match outcome {
            Ok(wrote) => {
                if wrote {
                    room.taken();
                }
                queued.job.answer();
                return None;
            }
            Err(error) => error,
        };
        connection.recover(&error);
        let again = match &error {
            Error::Fault(Fault { kind: FaultKind::Conflict, .. }) => attempt < CONFLICT_TRIES,
            Error::Fault(Fault { kind: FaultKind::Disconnected, .. }) => Instant::now() < give_up,
            Error::Fault(Fault { kind: FaultKind::NoRoom, what }) => {
                room.refused(what);
                false
            }
            Error::Fault(Fault { kind: FaultKind::Settings | FaultKind::Other, .. }) | Error::Refused(_) => {
                false
            }
        };
        if !again {
            let gone = error.is_lost().then(|| error.clone());
            queued.job.fail(error);
            return gone;
        }
        std::thread::sleep(Duration::from_millis(1 << attempt.min(7)));
    }
}
