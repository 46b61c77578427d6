//! PostgreSQL servers of a test's own, where the one that all share cannot be asked: with certificates, read-only, with a
//! standby, behind a pooler. They run as another user when the test is root's, because PostgreSQL refuses root.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use simgate::store::Location;

use crate::support::database;
use crate::support::harness::until;
use crate::support::ports::free_port;

/// A folder in which servers live; they end with it.
pub struct Ground {
    pub dir: PathBuf,
    user: Option<String>,
    programs: PathBuf,
}

/// One server. Its data may be thrown away and made anew.
pub struct Server {
    ground: Arc<Ground>,
    data: PathBuf,
    pub port: u16,
}

fn output(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let told = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(done.status.success(), "{command:?}: {}{}", told(&done.stdout), told(&done.stderr));
    told(&done.stdout).trim().to_string()
}

impl Ground {
    pub fn new() -> Arc<Ground> {
        // Debian keeps the server programs off the PATH; the newest version wins.
        let find = "command -v initdb || ls -d /usr/lib/postgresql/*/bin/initdb | sort -V | tail -n 1";
        let initdb = PathBuf::from(output(Command::new("/bin/sh").args(["-c", find])));
        let programs = initdb.canonicalize().unwrap().parent().unwrap().to_path_buf();
        let is_root = output(Command::new("id").arg("-u")) == "0";
        let other = "id -un postgres 2>/dev/null || echo nobody";
        let user = is_root.then(|| output(Command::new("/bin/sh").args(["-c", other])));
        let unique = format!("simgate_pg_{}_{:x}", std::process::id(), simgate::vault::random() as u32);
        let dir = std::env::temp_dir().join(unique);
        std::fs::create_dir(&dir).unwrap();
        let ground = Ground { dir, user, programs };
        ground.give_away(&ground.dir);
        Arc::new(ground)
    }

    /// Makes a file the servers' own.
    pub fn give_away(&self, file: &Path) {
        if let Some(user) = &self.user {
            output(Command::new("chown").arg(format!("{user}:")).arg(file));
        }
    }

    /// A program as the servers' user. It takes the place of the one that changes users, so it can be killed.
    fn program(&self, program: impl AsRef<Path>) -> Command {
        let mut command = match &self.user {
            Some(user) => {
                let group = output(Command::new("id").args(["-g", user]));
                let mut command = Command::new("setpriv");
                command.args(["--reuid", user, "--regid", &group, "--clear-groups", "--"]);
                command.arg(program.as_ref());
                command
            }
            None => Command::new(program.as_ref()),
        };
        command.current_dir(&self.dir).stdin(Stdio::null());
        command
    }

    /// A new server with these lines in its `postgresql.conf`, and this `pg_hba.conf`.
    pub fn server(self: &Arc<Self>, name: &str, lines: &[&str], doors: &str) -> Server {
        let server = Server { ground: self.clone(), data: self.dir.join(name), port: free_port() };
        let mut initdb = self.program(self.programs.join("initdb"));
        initdb.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "-D"]);
        output(initdb.arg(&server.data));
        let hba = server.data.join("pg_hba.conf");
        std::fs::write(&hba, format!("local all all trust\n{doors}\n")).unwrap();
        server.note(
            "fsync = off\nfull_page_writes = off\nmax_connections = 60\nlisten_addresses = '127.0.0.1'",
        );
        server.note(&lines.join("\n"));
        server.start();
        server
    }

    /// A pooler before a server, which is asked as the superuser, whoever asks.
    pub async fn pooler(&self, server: &Server, mode: &str) -> Pooler {
        let port = free_port();
        let file = self.dir.join(format!("pooler-{mode}.ini"));
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nauth_type = any\npool_mode = {mode}\nunix_socket_dir =\n",
            server.port
        );
        std::fs::write(&file, text).unwrap();
        let installed = Path::new("/usr/sbin/pgbouncer");
        let program = if installed.exists() { installed } else { Path::new("pgbouncer") };
        let child = self.program(program).arg("-q").arg(&file).stderr(Stdio::null()).spawn().unwrap();
        until("the pooler listens", async || std::net::TcpStream::connect(("127.0.0.1", port)).ok()).await;
        Pooler { child, port }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

pub struct Pooler {
    child: Child,
    pub port: u16,
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Adds lines to its settings; the last word on each counts.
    fn note(&self, lines: &str) {
        let file = self.data.join("postgresql.conf");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{text}\n{lines}\n")).unwrap();
    }

    fn control(&self, args: &[&str]) -> Command {
        let mut control = self.ground.program(self.ground.programs.join("pg_ctl"));
        control.args(["-w", "-t", "60", "-s", "-D"]).arg(&self.data).args(args);
        // A server keeps what its starter had open.
        control.stdout(Stdio::null()).stderr(Stdio::null());
        control
    }

    pub fn start(&self) {
        let options = format!("-p {} -k {}", self.port, self.ground.dir.display());
        let log = self.data.with_extension("log");
        let started = self.control(&["start", "-o", &options, "-l"]).arg(&log).status().unwrap();
        assert!(started.success(), "{}", std::fs::read_to_string(&log).unwrap_or_default());
    }

    /// `fast` ends sessions politely, `immediate` is a crash.
    pub fn stop(&self, how: &str) {
        assert!(self.control(&["stop", "-m", how]).status().unwrap().success());
    }

    pub fn promote(&self) {
        assert!(self.control(&["promote"]).status().unwrap().success());
    }

    /// Changes a setting of the running server, for old sessions, too.
    pub async fn set(&self, name: &str, value: &str) {
        self.note(&format!("{name} = '{value}'"));
        assert!(self.control(&["reload"]).status().unwrap().success());
        until("the server has its new setting", async || {
            (self.ask("postgres", &format!("SHOW {name}")) == value).then_some(())
        })
        .await;
    }

    /// Throws away what it has and becomes a standby of another server.
    pub fn follow(&self, primary: &Server) {
        let _ = std::fs::remove_dir_all(&self.data);
        let mut copy = self.ground.program(self.ground.programs.join("pg_basebackup"));
        copy.args([
            "-R",
            "-X",
            "stream",
            "-c",
            "fast",
            "--no-sync",
            "-d",
            &primary.url("postgres", "postgres"),
        ]);
        output(copy.arg("-D").arg(&self.data));
        self.note("cluster_name = 'standby'");
        self.start();
    }

    /// A server that is to follow another, with nothing in it yet.
    pub fn beside(&self, name: &str) -> Server {
        Server { ground: self.ground.clone(), data: self.ground.dir.join(name), port: free_port() }
    }

    pub fn url(&self, role: &str, database: &str) -> String {
        format!("postgres://{role}@127.0.0.1:{}/{database}", self.port)
    }

    fn socket(&self, database: &str) -> Location {
        let folder = self.ground.dir.display().to_string().replace('/', "%2F");
        Location::Postgres(format!("postgres://postgres@{folder}:{}/{database}", self.port))
    }

    /// Statements of the administrator, past every door.
    pub fn execute(&self, database: &str, statement: &str) {
        database::execute(&self.socket(database), statement).unwrap();
    }

    /// The first field of an answer, which must be text.
    pub fn ask(&self, database: &str, query: &str) -> String {
        database::rows(&self.socket(database), query)[0][0].clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test may have ended it, or never started it.
        let _ = self.control(&["stop", "-m", "immediate"]).status();
    }
}
