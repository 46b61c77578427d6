//! What of the service is running: whether the gateway of these settings is ready, and who has the turn at what.

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

const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the gateway itself, which alone knows how its jobs are doing.
pub async fn gateway(app: &App) -> Check {
    let address = reachable(app.settings.listen);
    let asked = async {
        let url = reqwest::Url::parse(&format!("http://{address}/readyz")).ok()?;
        let client = rpc::client(&url, PATIENCE).ok()?;
        let answer = client.get(url).send().await.ok()?;
        Some((answer.status().as_u16(), answer.text().await.ok()?))
    };
    match asked.await {
        Some((200, _)) => Check::ok("gateway", format!("the one at {address} is ready")),
        Some((503, why)) => Check::fail(
            "gateway",
            format!("the one at {address} is {}", why.trim()),
            "its log says more; a job that hangs is started again with the gateway: restart it",
        ),
        Some((status, _)) => Check::warn(
            "gateway",
            format!("whatever is at {address} answers {status}"),
            "is that a gateway? Its address is the setting listen",
        ),
        None => Check::warn(
            "gateway",
            format!("none answers at {address}"),
            "start it, or run this with the settings that it has",
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

/// Who scans each network and who settles on it, and for how long: what an instance that does neither is waiting for.
pub async fn turns(app: &App) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    let now = app.now();
    for &network in app.chains.keys() {
        let held = app.store.read(move |tx| cursors::turn(tx, network)).await?;
        checks.push(turn(network, "scanned", held, now));
    }
    for terminal in app.settler.iter().flat_map(|settler| settler.terminals.values()) {
        let (network, sender) = (terminal.network, terminal.sender().to_string());
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
        let advice =
            "a clock was wrong when it was taken: it is void, and the next instance that looks takes it";
        return Check::warn(
            "turn",
            format!("{name} is held by instance {instance} for {left} s more"),
            advice,
        );
    }
    Check::ok("turn", format!("{name} is {done} by instance {instance}, for {left} s more"))
}

/// No turn lasts for longer.
const LONGEST_S: i64 = 10;
