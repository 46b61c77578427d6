//! The real binary in a test's own folder: started on a free port, killed or asked to stop, and helped by the
//! command line. A server that a test leaves behind is killed.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::harness::{Db, Key, Reply, on_empty_place, on_own_place, on_place, reply, until};
use crate::support::place::Place;
use crate::support::ports::free_port;

pub struct Site {
    pub place: Place,
    settings: Vec<(&'static str, &'static str)>,
    pub client: reqwest::Client,
}

pub struct Server {
    child: Child,
    pub base: String,
    pub address: String,
}

/// Runs a test on a site of its own.
pub fn on_site(db: Db, settings: Vec<(&'static str, &'static str)>, test: impl AsyncFnOnce(&Site) + 'static) {
    on_empty_place(db, async move |place| {
        let client = crate::support::harness::client().build().unwrap();
        test(&Site { place: place.clone(), settings, client }).await;
    });
}

/// The same where the schema and the catalog are in place.
pub fn on_prepared_site(
    db: Db,
    settings: Vec<(&'static str, &'static str)>,
    test: impl AsyncFnOnce(&Site) + 'static,
) {
    on_place(db, async move |place| {
        let client = crate::support::harness::client().build().unwrap();
        test(&Site { place: place.clone(), settings, client }).await;
    });
}

/// The same on a database of a server that is the test's own.
pub fn on_site_at(
    url: &str,
    settings: Vec<(&'static str, &'static str)>,
    test: impl AsyncFnOnce(&Site) + 'static,
) {
    on_own_place(Place::at(url), async move |place| {
        let client = crate::support::harness::client().build().unwrap();
        test(&Site { place: place.clone(), settings, client }).await;
    });
}

/// A command that a shell becomes after a script, which ends in `exec`.
fn prepared(command: &Command, script: &str) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &format!("{script} \"$0\" \"$@\"")]);
    shell.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    shell.env_clear().stdin(Stdio::null());
    shell
}

impl Site {
    fn command(&self, log: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_simgate"));
        command.env_clear().current_dir(&self.place.dir).stdin(Stdio::null());
        command.args(["--database-url", &self.place.url, "--log", log]);
        command
    }

    /// Starts a server and does not wait for it.
    pub fn spawn(&self) -> Server {
        self.serve("error", Stdio::null(), Stdio::inherit(), None)
    }

    fn serve(&self, log: &str, out: Stdio, err: Stdio, script: Option<&str>) -> Server {
        let address = format!("127.0.0.1:{}", free_port());
        let mut command = self.command(log);
        command.args(["serve", "--listen", &address, "--sandbox-journal", "journal"]);
        let mut settings = BTreeMap::from([("rate_limit", "0"), ("ip_rate_limit", "0")]);
        settings.extend(self.settings.iter().copied());
        for (name, value) in settings {
            command.arg(format!("--{}={value}", name.replace('_', "-")));
        }
        if let Some(script) = script {
            command = prepared(&command, script);
        }
        let child = command.stdout(out).stderr(err).spawn().unwrap();
        Server { child, base: format!("http://{address}"), address }
    }

    /// Starts a server and waits until it is ready.
    pub async fn start(&self) -> Server {
        self.until_ready(self.spawn()).await
    }

    /// The same of a server that writes all that it has to say, at this level, into a file.
    pub async fn start_talkative(&self, log: &str, file: File) -> Server {
        self.until_ready(self.serve(log, file.try_clone().unwrap().into(), file.into(), None)).await
    }

    /// The same of a server that warns, and that is started with these options of `ulimit`.
    pub async fn start_limited(&self, ulimit: &str, file: File) -> Server {
        self.start_prepared(&format!("ulimit {ulimit} && exec"), file).await
    }

    /// The same of one that a shell becomes after this script, which ends in `exec`.
    pub async fn start_prepared(&self, script: &str, file: File) -> Server {
        let out = file.try_clone().unwrap().into();
        self.until_ready(self.serve("warn", out, file.into(), Some(script))).await
    }

    /// The same folder, with its database elsewhere.
    pub fn on(&self, url: String) -> Site {
        let mut place = self.place.clone();
        place.url = url;
        Site { place, settings: self.settings.clone(), client: self.client.clone() }
    }

    pub async fn until_ready(&self, mut server: Server) -> Server {
        let ready = format!("{}/readyz", server.base);
        until("the server is ready", async || {
            assert_eq!(server.child.try_wait().unwrap(), None, "the server ended by itself");
            let answer = self.client.get(&ready).send().await.ok()?;
            (answer.status() == 200).then_some(())
        })
        .await;
        server
    }

    /// Kills a server so often, at any moment, and starts another; tells where that is.
    pub async fn kill_often(&self, mut server: Server, times: usize, tell: impl Fn(&Server)) -> Server {
        for _ in 0..times {
            let pause = simgate::vault::random() % 1_200;
            tokio::time::sleep(Duration::from_millis(pause as u64)).await;
            server.kill();
            server = self.start().await;
            tell(&server);
        }
        server
    }

    /// Waits until all that is on the chains is in the books, and the books are right.
    pub async fn until_booked(&self) {
        until("books and chain agree", async || {
            let verdict = self.try_cli(&["ledger", "verify", "--chain"]).await;
            let quiet = verdict["chain"].as_array()?.iter().all(|line| line["pendingUsd"] == 0);
            (quiet && verdict["ok"] == true).then_some(())
        })
        .await;
    }

    async fn run(&self, args: &[&str]) -> std::process::Output {
        let mut command = self.command("error");
        command.arg("--json").args(args);
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    /// The same site, reached by another URL.
    pub fn by(&self, url: &str) -> Site {
        let mut place = self.place.clone();
        place.url = url.to_string();
        Site { place, settings: self.settings.clone(), client: self.client.clone() }
    }

    /// Runs a command that is refused: its exit code and its words.
    pub async fn refused(&self, args: &[&str]) -> (i32, String) {
        let output = self.run(args).await;
        let told = String::from_utf8(output.stdout).unwrap();
        assert!(!output.status.success(), "simgate {args:?} was not refused: {told}");
        (output.status.code().unwrap(), told)
    }

    /// Runs a command that must succeed; answers its JSON.
    pub async fn cli(&self, args: &[&str]) -> Value {
        let output = self.run(args).await;
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success(),
            "simgate {args:?}: {text} {}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_str(&text).unwrap()
    }

    /// Runs a command that may refuse; answers its JSON all the same.
    pub async fn try_cli(&self, args: &[&str]) -> Value {
        serde_json::from_slice(&self.run(args).await.stdout).unwrap()
    }

    /// A new partner with this much money, known to the server: its id and key.
    pub async fn partner(&self, server: &Server, name: &str, credit: &str) -> (String, Key) {
        let made = self.cli(&["partner", "create", "--name", name, "--credit", credit]).await;
        let text = |field: &str| made[field].as_str().unwrap().to_string();
        let key = Key { id: text("apiKey"), secret: text("apiSecret") };
        until("the server knows the new key", async || {
            let reply = self.send(&server.base, &key, "GET", "/api/b2b/v1/balance", None).await.unwrap();
            (reply.status == 200).then_some(())
        })
        .await;
        (text("partnerId"), key)
    }

    /// `None` when nobody answered.
    pub async fn send(
        &self,
        base: &str,
        key: &Key,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Option<Reply> {
        let request = self
            .client
            .request(method.parse().unwrap(), format!("{base}{path}"))
            .header("x-b2b-key", &key.id)
            .header("x-b2b-secret", &key.secret);
        let request = match body {
            Some(body) => request.header("content-type", "application/json").body(body.to_string()),
            None => request,
        };
        let response = request.send().await.ok()?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Some(Reply { status, headers, text: response.text().await.ok()? })
    }

    /// Tells the supplier how to behave.
    pub async fn supplier(&self, server: &Server, body: Value) {
        let request = self.client.post(format!("{}/sandbox/supplier", server.base));
        let request = request.header("content-type", "application/json").body(body.to_string());
        reply(request).await.expect(200);
    }

    pub async fn verify_books(&self) {
        let verdict = self.cli(&["ledger", "verify"]).await;
        assert_eq!(verdict["ok"], true, "{verdict}");
    }
}

impl Server {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks the server to stop, as a service manager does.
    pub fn terminate(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    }

    /// Waits for a server that was asked to stop: its exit code.
    pub async fn exit_code(&mut self) -> Option<i32> {
        until("the server has stopped", async || self.child.try_wait().unwrap()).await.code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
