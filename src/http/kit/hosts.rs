//! The names that may call the doors without a login that are meant for this machine: the sandbox's helpers and
//! `/metrics`. A page of another site can make its own name lead here (DNS rebinding), and its visitor's browser then
//! reads our answers for it; but the browser still sends the page's name.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State as FromState};
use axum::http::{HeaderMap, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::problem::Refused;
use crate::config::{Host, Settings};
use crate::domain::refusal::Refusal;

pub struct Hosts {
    own: Vec<Host>,
    /// We listen on every address of this machine: any address may be ours, and no page can have one as its name.
    any_address: bool,
}

impl Hosts {
    pub fn new(settings: &Settings) -> Hosts {
        let urls = [&settings.base_url, &settings.agent_url, &settings.checkout_url];
        Hosts::of(settings.listen, urls.into_iter().filter_map(|url| Host::of_url(url)).collect())
    }

    fn of(listen: SocketAddr, mut own: Vec<Host>) -> Hosts {
        own.push(Host::Address(listen.ip().to_canonical()));
        Hosts { own, any_address: listen.ip().is_unspecified() }
    }

    fn knows(&self, authority: &str) -> bool {
        Host::parse(authority).is_some_and(|host| {
            let addressed = self.any_address && matches!(host, Host::Address(_));
            host.is_loopback() || addressed || self.own.contains(&host)
        })
    }

    /// HTTP/2 and proxies' requests name the host in their address; we must know every name that a request gives.
    fn admit(&self, headers: &HeaderMap, uri: &Uri) -> bool {
        let mut named = headers
            .get_all(header::HOST)
            .iter()
            .map(|value| value.to_str().unwrap_or_default())
            .chain(uri.authority().map(|authority| authority.as_str()))
            .peekable();
        named.peek().is_some() && named.all(|authority| self.knows(authority))
    }
}

/// Lets in a request that calls us by one of our names.
pub async fn guard(FromState(hosts): FromState<Arc<Hosts>>, request: Request, next: Next) -> Response {
    if hosts.admit(request.headers(), request.uri()) {
        next.run(request).await
    } else {
        Refused::from(Refusal::HostNotAllowed).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_are_its_names() {
        let shop = || vec![Host::Name("shop.example".into())];
        let one = Hosts::of("192.0.2.7:8402".parse().unwrap(), shop());
        let all = Hosts::of("0.0.0.0:8402".parse().unwrap(), shop());
        for (authority, by_one, by_all) in [
            ("192.0.2.7:8402", true, true),
            ("192.0.2.8", false, true),
            ("[2001:db8::1]:8402", false, true),
            ("localhost:8402", true, true),
            ("shop.example", true, true),
            ("192.0.2.7.evil.example", false, false),
            ("shop.example.evil.example", false, false),
            ("evil.example", false, false),
        ] {
            assert_eq!((one.knows(authority), all.knows(authority)), (by_one, by_all), "{authority}");
        }
    }
}
