//! Whom a proxy forwards for, as the doors see it: a key that is bound to addresses opens for nobody whose address is
//! unknown, and those who are unknown share the limit of their proxy. Every form of the header is in
//! `src/http/forwarded.rs`.

use std::time::Instant;

use reqwest::header::HeaderValue;
use simgate::ops::operator::{self, KeyTerms};

use crate::support::harness::{Gateway, Key, both_databases, reply};
use crate::support::shapes::API;

/// The status of a call with these lines of the header.
async fn call(gateway: &Gateway, key: &Key, lines: &[&[u8]]) -> u16 {
    let mut request = gateway
        .client
        .get(format!("{}{API}/balance", gateway.base))
        .header("x-b2b-key", &key.id)
        .header("x-b2b-secret", &key.secret);
    for line in lines {
        request = request.header("x-forwarded-for", HeaderValue::from_bytes(line).unwrap());
    }
    reply(request).await.status
}

both_databases! {
    /// The key may be used from the proxy's own machine too: what cannot be read must not be taken for that.
    async fn an_unknown_caller_is_on_no_list(gateway) with [("trusted_proxies", "127.0.0.1,10.0.0.0/8")] {
        let account = operator::account(&gateway.app, &gateway.partner).await.unwrap().no;
        let terms = KeyTerms { ips: "127.0.0.1,192.0.2.7,2001:db8:7::/48".into(), ..KeyTerms::default() };
        let made = operator::create_key(&gateway.app, "test", account, terms).await.unwrap();
        let key = Key { id: made.id.to_string(), secret: made.secret };
        key.until_known(&gateway.app).await;
        let table: &[(&[&[u8]], u16)] = &[
            (&[], 200),
            (&[b"192.0.2.7"], 200),
            (&[b"192.0.2.7:4711"], 200),
            (&[b"::ffff:192.0.2.7"], 200),
            (&[b"[2001:db8:7::1]:4711"], 200),
            (&[b"2001:db8:7:ffff::1"], 200),
            (&[b"\xff, 192.0.2.7"], 200),
            (&[b"192.0.2.8, 192.0.2.7, 10.1.2.3"], 200),
            (&[b"192.0.2.8", b"192.0.2.7"], 200),
            (&[b"192.0.2.7", b"10.1.2.3"], 200),
            (&[b"127.0.0.1"], 200),
            (&[b"192.0.2.8"], 403),
            (&[b"192.0.2.7, 192.0.2.8"], 403),
            (&[b"192.0.2.7", b"192.0.2.8"], 403),
            (&[b"[2001:db8:8::1]:4711"], 403),
            (&[b"10.1.2.3"], 403),
            // The attack: these counted as the proxy's own address.
            (&[b"\xff"], 403),
            (&[b"192.0.2.7\xff"], 403),
            (&[b"192.0.2.7, \xe9, 10.1.2.3"], 403),
            (&[b""], 403),
            (&[b"192.0.2.7,"], 403),
            (&[b"192.0.2.7,,10.1.2.3"], 403),
            (&[b"192.0.2.7", b""], 403),
            (&[b"unknown"], 403),
            (&[b"_hidden"], 403),
            (&[b"fe80::1%eth0"], 403),
            (&[b"192.0.2.7:99999"], 403),
            (&[b"[127.0.0.1]"], 403),
        ];
        for (lines, status) in table {
            assert_eq!(call(gateway, &key, lines).await, *status, "{lines:?}");
        }
        // A key that is bound to nothing does not ask.
        assert_eq!(call(gateway, &gateway.key, &[b"unknown"]).await, 200);
    }

    async fn unknown_callers_are_limited_as_their_proxy_is(gateway)
        with [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "1"), ("ip_rate_burst", "8")]
    {
        let search = format!("{}/api/products/search?country=JP", gateway.base);
        let started = Instant::now();
        let mut allowed = 0;
        for n in 0..120 {
            let request = gateway.client.get(&search);
            let request = match n % 4 {
                0 => request,
                1 => request.header("x-forwarded-for", "unknown"),
                2 => request.header("x-forwarded-for", HeaderValue::from_bytes(b"192.0.2.7\xff").unwrap()),
                _ => request.header("x-forwarded-for", format!("_{n}")),
            };
            allowed += u64::from(reply(request).await.status == 200);
        }
        let most = 8 + started.elapsed().as_secs() + 1;
        assert!((8..=most).contains(&allowed), "{allowed} of at most {most}");
        reply(gateway.client.get(&search).header("x-forwarded-for", "192.0.2.7")).await.expect(200);
    }
}
