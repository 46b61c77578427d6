//! Where stories are played: a gateway without its jobs, so that nothing happens but what a step does, on chains of the
//! stories' own. One database serves many stories, each with accounts of its own and far from the last one in time.

use std::sync::{Arc, Mutex};

use simgate::app::App;
use simgate::chain::address::SANDBOX_EVM_XPUB;
use simgate::domain::coupon::{Coupon, Discount};
use simgate::domain::network::Network;
use simgate::domain::time::Time;
use simgate::ops::coupons::desk;
use simgate::ops::scan::{Halt, Scanner};
use simgate::start::{self, Role};
use simgate::store::cursors;
use simgate::store::tx::Tx;

use super::chain::{CONFIRMATIONS, StoryChain};
use super::node::{self, Sight};
use super::story::NETWORKS as COUNT;
use crate::support::harness::Db;
use crate::support::place::Place;

pub const NETWORKS: [Network; COUNT] = [Network::Polygon, Network::Arbitrum, Network::Tron];
const GAS_KEY: &str = "0909090909090909090909090909090909090909090909090909090909090909";
pub const COUPON: &str = "STORY";
/// Scanners leave so many of the newest blocks for the next round, where a network has nodes.
const LAG: i64 = 2;
const HOUR_MS: i64 = 3_600_000;
/// What a supplier's silence costs a story: less than the pause after which it would be asked again.
const SILENCE_MS: i64 = 240;

pub struct World {
    pub app: App,
    pub chains: Vec<Arc<StoryChain>>,
    scanners: Vec<Scanner>,
    sight: Arc<Mutex<Option<Sight>>>,
    place: Place,
    settings: Vec<(String, String)>,
    /// By how much the clock was moved.
    moved: i64,
    pub stories: u64,
    /// A folder in memory, if the machine has one: what is tested here is not the disk.
    folder: Option<std::path::PathBuf>,
}

impl World {
    pub async fn new(place: &Place) -> World {
        let (listener, url) = node::listen().await;
        let sight = Arc::new(Mutex::new(None));
        node::serve(listener, sight.clone());
        let (confirmations, silence) = (CONFIRMATIONS.to_string(), SILENCE_MS.to_string());
        let mut settings: Vec<(String, String)> = [
            ("staging", "true"),
            ("evm_xpub", SANDBOX_EVM_XPUB),
            ("polygon_rpc", url.as_str()),
            ("polygon_confirmations", &confirmations),
            ("arbitrum_confirmations", &confirmations),
            ("tron_confirmations", &confirmations),
            ("x402_settler", "local"),
            ("polygon_gas_key", GAS_KEY),
            ("answer_within_ms", "1"),
            ("supplier_timeout_ms", &silence),
            // What is too little to be kept is looked at in `checkouts/slots.rs`.
            ("least_kept_usd", "0"),
        ]
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .to_vec();
        let memory = std::path::Path::new("/dev/shm");
        let folder = (place.db == Db::Sqlite && memory.is_dir()).then(|| {
            let name =
                format!("simgate_stories_{}_{:x}", std::process::id(), simgate::vault::random() as u64);
            memory.join(name)
        });
        if let Some(folder) = &folder {
            std::fs::create_dir_all(folder).unwrap();
            settings.push(("database_url".into(), format!("sqlite:{}", folder.join("simgate.db").display())));
        }
        let app = open(place, &settings).await;
        let chain = |network: Network| {
            let tokens = app.settings.settlement.networks[&network].tokens.clone();
            Arc::new(StoryChain::new(network, tokens, app.now()))
        };
        let chains: Vec<Arc<StoryChain>> = NETWORKS.into_iter().map(chain).collect();
        let scanners = chains.iter().map(|chain| Scanner::new(chain.clone())).collect();
        let place = place.clone();
        let mut world = World { app, chains, scanners, sight, place, settings, moved: 0, stories: 0, folder };
        world.meet_node().await;
        let coupon = Coupon::new(COUPON.into(), Discount::Percent(10), world.app.now());
        desk::create(&world.app, "test", coupon).await.unwrap();
        world
    }

    /// The node sees our chain, and the gateway knows that it can settle there.
    async fn meet_node(&mut self) {
        let sight = Sight { chain: self.chains[0].clone(), clock: self.app.clock.clone() };
        *self.sight.lock().unwrap() = Some(sight);
        let settler = self.app.settler.as_ref().expect("signatures are taken");
        settler.by.check(&settler.terminals[&NETWORKS[0]]).await.expect("the node is fit");
    }

    pub fn now(&self) -> Time {
        self.app.now()
    }

    pub fn pass(&mut self, millis: i64) {
        self.app.clock.advance(millis);
        self.moved += millis;
    }

    /// Goes on to a time and a part of the chains where nothing of earlier stories is seen any more.
    pub async fn begin(&mut self) {
        self.stories += 1;
        self.pass(26 * HOUR_MS);
        for network in 0..COUNT {
            self.chains[network].begin(self.now());
            self.round(network).await;
        }
        // What was left open is closed now, and rests for a day.
        self.pass(26 * HOUR_MS);
        for network in 0..COUNT {
            self.round(network).await;
        }
    }

    /// One round of a scanner. Answers what it looked at: up to which block, and the head; `None` when it could not.
    pub async fn round(&mut self, network: usize) -> Option<(i64, i64)> {
        let lag = if network == 0 { LAG } else { 0 };
        // A scanner looks at a new head, and at nothing while there is none.
        self.chains[network].mine(lag.max(1) as usize, self.now());
        let name = NETWORKS[network];
        let scanned = self.app.store.read(move |tx: &mut Tx| cursors::get(tx, name)).await.unwrap();
        let head = self.chains[network].all().map(|(_, head)| head);
        let round = self.scanners[network].round(&self.app).await;
        self.until_quiet().await;
        match round {
            Err(Halt::Ours(error)) => panic!("a round failed by our own fault: {error}"),
            Err(Halt::Chain(_)) => None,
            Ok(_) => {
                let head = head.expect("a node that is down shows nothing");
                let before = scanned.map_or(0, |cursor| cursor.scanned);
                (head >= before).then_some((head - lag, head))
            }
        }
    }

    /// Whatever was set going has come to its end.
    pub async fn until_quiet(&self) {
        self.app.tasks.close();
        self.app.tasks.wait().await;
        self.app.tasks.reopen();
    }

    /// The gateway ends and starts anew.
    pub async fn restart(&mut self) {
        self.close().await;
        self.app = open(&self.place, &self.settings).await;
        self.app.clock.advance(self.moved);
        // Turns of the one before are over by then.
        self.pass(10_000);
        self.scanners = self.chains.iter().map(|chain| Scanner::new(chain.clone())).collect();
        self.meet_node().await;
    }

    async fn close(&self) {
        self.until_quiet().await;
        let store = self.app.store.clone();
        tokio::task::spawn_blocking(move || store.close()).await.unwrap();
    }

    /// Long enough that recovery may ask again.
    pub fn pass_silence(&mut self) {
        self.pass(3 * SILENCE_MS);
    }

    pub async fn end(self) {
        self.close().await;
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

async fn open(place: &Place, settings: &[(String, String)]) -> App {
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (&**name, &**value)).collect();
    let mut settings = place.settings(&settings);
    settings.demo_file = place.dir.join("simgate-demo.env");
    simgate::telemetry::init_logs("off", false);
    start::open(settings, Role::Server).await.unwrap()
}
