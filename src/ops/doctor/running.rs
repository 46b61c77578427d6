//! What is running: whether the gateway of these settings is ready, and which instances hold the turns.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use super::Check;
use crate::app::App;
use crate::chain::rpc;
use crate::domain::network::Network;
use crate::domain::time::Time;
use crate::error::Result;
use crate::store::cursors::{self, Held};
use crate::store::settlements;
use crate::x402::settler::Place;

const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the gateway itself: only it knows how its jobs are doing.
pub async fn gateway(app: &App) -> Check {
    let address = reachable(app.settings.listen);
    let asked = async {
        let url = reqwest::Url::parse(&format!("http://{address}/readyz")).ok()?;
        let client = rpc::client(&url, PATIENCE).ok()?;
        let answer = client.get(url).send().await.ok()?;
        Some((answer.status().as_u16(), answer.text().await.ok()?))
    };
    match asked.await {
        Some((200, _)) => Check::ok("gateway", format!("the gateway at {address} is ready")),
        Some((503, why)) => Check::fail(
            "gateway",
            format!("the gateway at {address} is {}", why.trim()),
            "its log says more; restart the gateway to restart a job that hangs",
        ),
        Some((status, _)) => Check::warn(
            "gateway",
            format!("the program at {address} answers {status}"),
            "is that a gateway? Its address is the setting listen",
        ),
        None => Check::warn(
            "gateway",
            format!("no gateway answers at {address}"),
            "start it, or run this command with its settings",
        ),
    }
}

/// Where a listener can be reached from this machine.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

/// Which instances scan each network and settle on it, and for how long: what the other instances wait for. On a
/// simulated chain a turn to settle is taken only when there is something to settle.
pub async fn turns(app: &App) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    let now = app.now();
    for &network in app.chains.keys() {
        let held = app.store.read(move |tx| cursors::turn(tx, network)).await?;
        checks.push(turn(network, "scanned", held, now));
    }
    let terminals = app.settler.iter().flat_map(|settler| settler.terminals.values());
    for terminal in terminals.filter(|terminal| matches!(terminal.place, Place::Nodes(_))) {
        let (network, sender) = (terminal.network, terminal.sender_name().to_string());
        let held = app.store.read(move |tx| settlements::turn(tx, network, &sender)).await?;
        checks.push(turn(network, "settled", held, now));
    }
    Ok(checks)
}

fn turn(network: Network, done: &str, held: Option<Held>, now: Time) -> Check {
    let name = network.as_str();
    let Some(Held { holder, until }) = held.filter(|held| held.until >= now) else {
        let advice =
            "an instance takes the turn as soon as one runs and reaches a node; what does its log say?";
        return Check::warn("turn", format!("{name} is {done} by nobody"), advice);
    };
    let instance = holder.split(' ').next().unwrap_or_default();
    let left = (until.micros() - now.micros()) / 1_000_000;
    if left > LONGEST_S {
        let advice = "a clock was wrong when the turn was taken: it is void, and the next instance takes it";
        return Check::warn(
            "turn",
            format!("{name} is held by instance {instance} for {left} s more"),
            advice,
        );
    }
    Check::ok("turn", format!("{name} is {done} by instance {instance}, for {left} s more"))
}

/// The longest that a turn lasts.
const LONGEST_S: i64 = 10;
