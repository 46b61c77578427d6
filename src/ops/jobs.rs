//! How the jobs are doing: when each last finished a round, and which of those that money depends on are late.
//! `jobs/mod.rs` runs them. Times are by the stopwatch, so setting the clock makes no job late.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use metrics::{counter, gauge};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::domain::ids::secret_text;
use crate::domain::refusal::Refusal;
use crate::domain::words::words;
use crate::vault;

/// The jobs of this process, by name: `recover`, `scan POLYGON`.
#[derive(Default)]
pub struct Jobs(Mutex<BTreeMap<String, Arc<Job>>>);

pub struct Job {
    pub name: String,
    /// How long a round may take; `None` when no money depends on the job.
    limit: Option<Duration>,
    alive_at: Mutex<Instant>,
    fate: watch::Sender<Fate>,
}

words! {
    /// What a sandbox does to a job, for testing.
    pub enum Fate: ALL, parse {
        Work = "ok",
        /// It panics where it stands.
        Panic = "panic",
        /// It stops where it stands, until told otherwise.
        Hang = "hang",
    }
}

tokio::task_local! {
    /// The job that runs in this task.
    static JOB: Arc<Job>;
}

/// Notes that this task's job has finished a round, well or not.
pub fn finished() {
    // Outside of a job, as in a test that plays one by hand, there is nothing to note.
    let _ = JOB.try_with(|job| {
        job.live();
        counter!("simgate_job_rounds_total", "job" => job.name.clone()).increment(1);
    });
}

/// Notes a step of a long round: a job that makes progress does not hang.
pub fn alive() {
    let _ = JOB.try_with(|job| job.live());
}

impl Jobs {
    /// Registers a job. It has until its limit to finish its first round.
    pub fn enlist(&self, name: String, limit: Option<Duration>) -> Arc<Job> {
        let alive_at = Mutex::new(Instant::now());
        let job = Arc::new(Job { name, limit, alive_at, fate: watch::Sender::new(Fate::Work) });
        self.all().insert(job.name.clone(), job.clone());
        job
    }

    /// The jobs that money depends on and that have not finished a round in time, and for how long.
    pub fn late(&self) -> Vec<(String, Duration)> {
        let all = self.all();
        let late = all.values().filter(|job| job.limit.is_some_and(|limit| job.age() > limit));
        late.map(|job| (job.name.clone(), job.age())).collect()
    }

    /// Updates the gauges of how long ago each job finished a round.
    pub fn tell_ages(&self) {
        for job in self.all().values() {
            gauge!("simgate_job_age_seconds", "job" => job.name.clone()).set(job.age().as_secs_f64());
        }
    }

    /// For sandboxes: sets what happens to a job.
    pub fn decide(&self, name: &str, fate: Fate) -> Result<(), Refusal> {
        let all = self.all();
        let job = all.get(name).ok_or_else(|| {
            let names: Vec<&str> = all.keys().map(String::as_str).collect();
            Refusal::field("job", format!("must be one of: {}", names.join(", ")))
        })?;
        job.fate.send_replace(fate);
        Ok(())
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Job>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    /// Runs the work as this job, as its fate allows. The work ends by itself when `stop` is cancelled.
    pub async fn run(self: Arc<Self>, stop: &CancellationToken, work: impl Future<Output = ()>) {
        let mut fate = self.fate.subscribe();
        let (job, mut work) = (self.clone(), Box::pin(JOB.scope(self, work)));
        loop {
            let decided = *fate.borrow_and_update();
            match decided {
                Fate::Work => tokio::select! {
                    () = &mut work => return,
                    _ = fate.changed() => {}
                },
                Fate::Hang => tokio::select! {
                    () = stop.cancelled() => return,
                    _ = fate.changed() => {}
                },
                Fate::Panic => {
                    job.fate.send_replace(Fate::Work);
                    panic!("the sandbox asked for this panic");
                }
            }
        }
    }

    fn live(&self) {
        *self.alive_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn age(&self) -> Duration {
        self.alive_at.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}

/// A new name for a holder of turns: this instance, as an operator knows it, and a unique word.
pub fn holder() -> String {
    format!("{} {}", instance(), secret_text("", [vault::random(), vault::random()]))
}

/// The machine's name and the process's number.
pub fn instance() -> &'static str {
    static INSTANCE: LazyLock<String> = LazyLock::new(|| {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = host.split_whitespace().next().unwrap_or("localhost");
        format!("{host}/{}", std::process::id())
    });
    &INSTANCE
}
