//! The protocol at `/api/mcp`: every revision on one address, what a client may leave out, what is said when it is
//! wrong, who is let in, and what is listed.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::harness::{Gateway, Reply, both_databases, reply};
use crate::support::tool_caller::{MCP, call, fine, log_in, message, request, result, rpc, tool_call, tools};

const MODERN: &str = "2026-07-28";

fn initialize(version: &str) -> Value {
    let client = json!({ "name": "test", "version": "1" });
    message("initialize", json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client }))
}

/// A message as clients of the newest revision send it.
fn modern(gateway: &Gateway, method: &str, mut params: Value, name: Option<&str>) -> reqwest::RequestBuilder {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let request = request(gateway, &message(method, params))
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", MODERN)
        .header("mcp-method", method);
    match name {
        Some(name) => request.header("mcp-name", name),
        None => request,
    }
}

/// The code of a JSON-RPC error outside any request.
#[track_caller]
fn refused(answer: &Reply, status: u16) -> i64 {
    let body = answer.expect(status);
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!((&body["jsonrpc"], &body["id"]), (&json!("2.0"), &Value::Null), "{body}");
    assert!(!body["error"]["message"].as_str().unwrap().is_empty());
    body["error"]["code"].as_i64().unwrap()
}

fn get(gateway: &Gateway, path: &str) -> reqwest::RequestBuilder {
    gateway.client.get(format!("{}{path}", gateway.base))
}

/// Names, required inputs and the four hints (read-only, destructive, idempotent, open world), as specified.
const TOOLS: [(&str, &[&str], [bool; 4]); 15] = [
    ("get_esim_catalog", &[], [true, false, true, false]),
    ("get_knowledge_base", &[], [true, false, true, false]),
    ("validate_coupon", &["code", "packageCode"], [true, false, true, false]),
    ("get_checkout_url", &["packageCode"], [true, false, true, false]),
    ("send_agent_otp", &["email"], [false, false, true, true]),
    ("verify_agent_otp", &["email", "code"], [false, false, false, false]),
    ("get_wallet_balance", &[], [true, false, true, false]),
    ("purchase_esim_with_wallet", &["packageCode"], [false, false, false, true]),
    ("cancel_order", &["orderId"], [false, true, false, false]),
    ("refresh_esim_usage", &["orderId"], [false, false, true, true]),
    ("get_wallet_transactions", &[], [true, false, true, false]),
    ("get_topup_packages", &["orderId"], [true, false, true, false]),
    ("purchase_topup", &["orderId", "packageCode"], [false, false, false, true]),
    ("get_user_orders", &[], [true, false, true, false]),
    ("get_available_coupons", &[], [true, false, true, false]),
];

both_databases! {
    async fn every_revision_is_spoken(gateway) {
        for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            let answer = reply(request(gateway, &initialize(version)).header("accept", "application/json, text/event-stream")).await;
            let told = result(&answer);
            assert_eq!(told["protocolVersion"], version);
            assert_eq!((&told["serverInfo"]["name"], &told["serverInfo"]["version"]), (&json!("simgate"), &json!("1.0.0")));
            assert!(answer.headers.get("mcp-session-id").is_none(), "no sessions are kept");
            let listed = reply(request(gateway, &message("tools/list", json!({}))).header("mcp-protocol-version", version)).await;
            assert_eq!(result(&listed)["tools"].as_array().unwrap().len(), 15);
        }
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(rpc(gateway, &ready).await.status, 202);

        let told = result(&reply(modern(gateway, "server/discover", json!({}), None)).await);
        assert!(told["supportedVersions"].as_array().unwrap().contains(&json!(MODERN)), "{told}");
        let listed = result(&reply(modern(gateway, "tools/list", json!({}), None)).await);
        assert_eq!(listed["tools"].as_array().unwrap().len(), 15);
        assert!(listed["ttlMs"].is_u64());
        let arguments = json!({ "name": "get_esim_catalog", "arguments": { "countryCode": "Japan" } });
        let found = result(&reply(modern(gateway, "tools/call", arguments, Some("get_esim_catalog"))).await);
        assert_eq!(found["resultType"], "complete");
        assert_eq!(found["structuredContent"]["plans"][0]["locationCodes"], json!(["JP"]));
    }

    /// Whatever is accepted, or nothing: a plain `curl` works, and the answer is JSON.
    async fn a_client_may_accept_what_it_likes(gateway) {
        for accept in [None, Some("*/*"), Some("application/json"), Some("text/event-stream"), Some("text/html")] {
            let request = request(gateway, &tool_call("get_esim_catalog", json!({ "countryCode": "JP" })));
            let request = match accept {
                Some(accept) => request.header("accept", accept),
                None => request,
            };
            let answer = reply(request).await;
            assert_eq!(answer.header("content-type"), "application/json", "{accept:?}");
            assert_eq!(result(&answer)["isError"], false);
        }
    }

    /// What was found before is told again, to whoever asks, under the id of the asking.
    async fn a_search_is_answered_the_same_way_twice(gateway) {
        let ask = async |id: Value, arguments: Value| {
            let mut message = tool_call("get_esim_catalog", arguments);
            message["id"] = id.clone();
            let told = rpc(gateway, &message).await.expect(200);
            assert_eq!((&told["id"], &told["jsonrpc"]), (&id, &json!("2.0")));
            told["result"].clone()
        };
        let first = ask(json!(1), json!({ "countryCode": "Japan" })).await;
        for id in [json!(2), json!("two"), json!(3)] {
            assert_eq!(ask(id, json!({ "countryCode": "Japan" })).await, first);
        }
        let other = ask(json!(4), json!({ "countryCode": "Japan", "limit": 1 })).await;
        assert_eq!(other["structuredContent"]["plans"].as_array().unwrap().len(), 1);
        for _ in 0..2 {
            let wrong = ask(json!(5), json!({ "countryCode": "Japan", "limit": 0 })).await;
            assert_eq!(wrong["isError"], true);
        }
    }

    async fn what_is_no_message_is_refused_in_json_rpc(gateway) {
        let post = |body: &str| {
            let url = format!("{}{MCP}", gateway.base);
            gateway.client.post(url).header("content-type", "application/json").body(body.to_string())
        };
        for broken in ["{", "", "{\"jsonrpc\": \"2.0\", ", "\u{0}", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":"\ud800"}}"#] {
            assert_eq!(refused(&reply(post(broken)).await, 400), -32700, "{broken:?}");
        }
        let no_text = [br#"{"jsonrpc":"2.0","id":1,"method":"tools/"#.as_slice(), b"\xff\xfe", br#""}"#].concat();
        assert_eq!(refused(&reply(post("").body(no_text)).await, 400), -32700);
        let one = tool_call("get_esim_catalog", json!({})).to_string();
        for wrong in [format!("[{one},{one}]"), "[]".into(), "{}".into(), "3".into(), "{\"method\": \"tools/list\"}".into()] {
            let told = reply(post(&wrong)).await;
            assert_eq!(refused(&told, 400), -32600, "{wrong}");
            assert_eq!(told.text.contains("batches"), wrong.starts_with('['), "{wrong}: {}", told.text);
        }
        // An id that can be read is named, and so is what is wrong.
        for (wrong, id, said) in [
            (json!({ "jsonrpc": "2.0", "id": 1, "result": {} }), json!(1), "this is a response"),
            (json!({ "jsonrpc": "2.0", "id": "a", "error": { "code": 1, "message": "x" } }), json!("a"), "this is a response"),
            (json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": [] }), json!(2), "params must be an object"),
            (json!({ "jsonrpc": "2.0", "id": 1.5, "method": "tools/list" }), json!(1.5), "id must be a string or a whole number"),
            (json!({ "jsonrpc": "2.0", "id": {}, "method": "tools/list" }), Value::Null, "id must be a string or a whole number"),
            (json!({ "jsonrpc": "1.0", "id": 3, "method": "tools/list" }), json!(3), "jsonrpc must be"),
            (json!({ "jsonrpc": "2.0", "id": 4, "method": 5 }), json!(4), "method must be a string"),
        ] {
            let told = reply(post(&wrong.to_string())).await.expect(400);
            assert_eq!((&told["id"], &told["error"]["code"], told.as_object().unwrap().len()), (&id, &json!(-32600), 3), "{wrong}: {told}");
            assert!(told["error"]["message"].as_str().unwrap().contains(said), "{wrong}: {told}");
        }
        let untyped = gateway.client.post(format!("{}{MCP}", gateway.base)).body(one.clone());
        refused(&reply(untyped).await, 415);
        let large = tool_call("get_esim_catalog", json!({ "countryCode": "x".repeat(70_000) })).to_string();
        refused(&reply(post(&large)).await, 413);

        let error = |answer: Reply| {
            let body = answer.json();
            assert_eq!(body["id"], 7, "{body}");
            body["error"]["code"].as_i64().unwrap_or_else(|| panic!("{body}"))
        };
        assert_eq!(error(rpc(gateway, &tool_call("buy_everything", json!({}))).await), -32602);
        assert_eq!(error(rpc(gateway, &message("tools/call", json!({ "arguments": {} }))).await), -32602);
        assert_eq!(error(rpc(gateway, &message("tools/call", json!({ "name": "get_esim_catalog", "arguments": [] }))).await), -32602);
        let (version, client) = ("2025-06-18", json!({ "name": "test", "version": "1" }));
        for params in [
            json!({}),
            json!({ "protocolVersion": version, "capabilities": {} }),
            json!({ "protocolVersion": null, "capabilities": {}, "clientInfo": client }),
            json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test" } }),
        ] {
            let told = rpc(gateway, &message("initialize", params)).await;
            assert!(told.text.contains("clientInfo") && told.text.contains("protocolVersion"), "{}", told.text);
            assert_eq!(error(told), -32602);
        }
        assert_eq!(error(rpc(gateway, &json!({ "jsonrpc": "2.0", "id": 7, "method": "initialize" })).await), -32602);
        // The newest revision has no such method.
        let gone = reply(modern(gateway, "initialize", json!({}), None)).await;
        assert_eq!((gone.status, error(gone)), (404, -32601));
        assert_eq!(error(rpc(gateway, &message("tools/uncall", json!({}))).await), -32601);
        assert_eq!(error(rpc(gateway, &message("prompts/get", json!({ "name": "nothing" }))).await), -32602);
        let unknown = rpc(gateway, &message("resources/read", json!({ "uri": "kb://nothing" }))).await;
        assert!([-32002, -32602].contains(&error(unknown)));
    }

    async fn strangers_pages_and_names_are_kept_out(gateway) with [("mcp_origins", "https://agents.example")] {
        let post = || request(gateway, &message("tools/list", json!({})));
        let own = reply(post().header("origin", &gateway.base)).await;
        own.expect(200);
        assert_eq!(own.header("access-control-allow-origin"), gateway.base);
        reply(post().header("origin", "https://agents.example")).await.expect(200);
        for origin in ["https://evil.example", "null", "http://127.0.0.1:1", "https://agents.example.evil.example"] {
            refused(&reply(post().header("origin", origin)).await, 403);
        }
        refused(&reply(post().header("host", "evil.example")).await, 403);
        reply(post().header("host", "localhost:8402")).await.expect(200);
        let preflight = || gateway.client.request("OPTIONS".parse().unwrap(), format!("{}{MCP}", gateway.base));
        let allowed = reply(preflight().header("origin", "https://agents.example")).await;
        assert_eq!(allowed.status, 204);
        assert!(allowed.header("access-control-allow-headers").contains("authorization"));
        refused(&reply(preflight().header("origin", "https://evil.example")).await, 403);
        // A look at what is here is no exception.
        refused(&reply(get(gateway, MCP).header("origin", "https://evil.example")).await, 403);
        reply(get(gateway, MCP).header("origin", "https://agents.example")).await.expect(200);
    }

    async fn the_tools_are_those_of_the_specification(gateway) {
        let listed = tools(gateway).await;
        assert_eq!(listed.len(), TOOLS.len());
        for (name, required, hints) in TOOLS {
            let tool = listed.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{name} is missing"));
            assert_eq!((&tool["inputSchema"]["type"], &tool["inputSchema"]["additionalProperties"]), (&json!("object"), &json!(false)), "{name}");
            assert_eq!(tool["inputSchema"]["required"], json!(required), "{name}");
            for field in required {
                assert!(tool["inputSchema"]["properties"][field]["description"].is_string(), "{name}.{field}");
            }
            let told = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]
                .map(|hint| tool["annotations"][hint].as_bool().unwrap());
            assert_eq!(told, hints, "{name}");
            assert_eq!(tool["outputSchema"]["type"], "object");
            let error = |branch: &Value| branch["required"] == json!(["error"]);
            assert!(tool["outputSchema"]["anyOf"].as_array().unwrap().iter().any(error), "{name} has no error branch");
            // Libraries that make types of schemas read only what stands beside a choice.
            assert!(tool["outputSchema"].get("properties").is_none(), "{name}");
            let ignoring = |branch: &Value| branch["properties"]["ignoredInputs"]["type"] == "array";
            let spends = ["purchase_esim_with_wallet", "purchase_topup", "cancel_order"].contains(&name);
            assert!(tool["outputSchema"]["anyOf"].as_array().unwrap().iter().all(|branch| ignoring(branch) != spends), "{name}");
            let about = tool["description"].as_str().unwrap();
            assert!((200..1_000).contains(&about.len()), "{name}: {} letters", about.len());
            assert!(tool["title"].is_string());
        }
    }

    /// A client with the old transport, or with another wrong method, is told which one is right.
    async fn a_wrong_method_is_told_the_right_transport(gateway) {
        let send = |method: &str| gateway.client.request(method.parse().unwrap(), format!("{}{MCP}", gateway.base));
        for request in [
            send("GET").header("accept", "text/event-stream"),
            send("GET").header("accept", "application/json, text/event-stream"),
            send("DELETE"),
            send("PUT").body("{}"),
            send("PATCH"),
        ] {
            let told = reply(request).await;
            assert_eq!(refused(&told, 405), -32000);
            assert_eq!(told.header("allow"), "GET, HEAD, POST, OPTIONS");
            assert!(told.text.contains("Streamable HTTP") && told.text.contains("POST") && told.text.contains("sse"), "{}", told.text);
        }
        let options = reply(send("OPTIONS")).await;
        assert_eq!((options.status, options.header("allow")), (204, "GET, HEAD, POST, OPTIONS"));
        assert_eq!(reply(send("HEAD")).await.status, 200);
    }

    /// Everything that says what is here is made from the one list.
    async fn the_gateway_can_be_found(gateway) {
        let listed = tools(gateway).await;
        let descriptor = reply(get(gateway, MCP)).await.expect(200);
        assert_eq!((&descriptor["status"], &descriptor["version"]), (&json!("active"), &json!("1.0.0")));
        assert_eq!(descriptor["protocol"], "Model Context Protocol over HTTP");
        assert_eq!(descriptor["endpoint"], format!("{}{MCP}", gateway.base));
        let brief: Vec<Value> = listed
            .iter()
            .map(|tool| json!({ "name": tool["name"], "title": tool["title"], "description": tool["description"] }))
            .collect();
        assert_eq!(descriptor["tools"], json!(brief));
        assert_eq!(reply(get(gateway, MCP).header("accept", "text/html")).await.expect(200), descriptor);

        for path in ["/api/mcp/server-card", "/.well-known/mcp/server-card.json"] {
            let card = reply(get(gateway, path)).await.expect(200);
            assert_eq!(card["remotes"][0]["url"], format!("{}{MCP}", gateway.base));
        }
        let catalog = reply(get(gateway, "/.well-known/ai-catalog.json")).await;
        assert_eq!(catalog.header("content-type"), "application/ai-catalog+json");
        assert_eq!(catalog.expect(200)["entries"][0]["url"], format!("{}/api/mcp/server-card", gateway.base));
        let links = reply(get(gateway, "/.well-known/api-catalog")).await;
        assert_eq!(links.header("content-type"), "application/linkset+json");
        for entry in links.expect(200)["linkset"].as_array().unwrap() {
            let described = entry["service-desc"][0]["href"].as_str().unwrap();
            reply(gateway.client.get(described)).await.expect(200);
        }
        let text = reply(get(gateway, "/llms.txt")).await.text;
        assert!(listed.iter().all(|tool| text.contains(tool["name"].as_str().unwrap())), "{text}");
    }

    async fn help_can_be_read_and_prompts_started(gateway) {
        let listed = result(&rpc(gateway, &message("resources/list", json!({}))).await);
        let resources = listed["resources"].as_array().unwrap();
        assert!(resources.iter().any(|resource| resource["uri"] == "kb://install/ios"));
        let told = fine(call(gateway, "get_knowledge_base", json!({})).await);
        assert_eq!(told["articles"].as_array().unwrap().len(), resources.len());
        let blank = fine(call(gateway, "get_knowledge_base", json!({ "topic": "   " })).await);
        assert_eq!(blank, told, "nothing was asked for");
        for article in told["articles"].as_array().unwrap() {
            let uri = format!("kb://{}", article["id"].as_str().unwrap());
            let read = result(&rpc(gateway, &message("resources/read", json!({ "uri": uri }))).await);
            assert!(read["contents"][0]["text"].as_str().unwrap().ends_with(article["text"].as_str().unwrap()));
        }
        let some = fine(call(gateway, "get_knowledge_base", json!({ "topic": "refund" })).await);
        assert_eq!(some["articles"][0]["id"], "policy/refunds");

        let listed = result(&rpc(gateway, &message("prompts/list", json!({}))).await);
        let names: Vec<&str> = listed["prompts"].as_array().unwrap().iter().map(|prompt| prompt["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["buy_esim", "diagnose_no_data"]);
        let arguments = json!({ "name": "buy_esim", "arguments": { "destination": "Ja\u{200b}pan" } });
        let got = result(&rpc(gateway, &message("prompts/get", arguments)).await);
        assert!(got["messages"][0]["content"]["text"].as_str().unwrap().contains("for: Japan."));
        let missing = rpc(gateway, &message("prompts/get", json!({ "name": "buy_esim" }))).await.json();
        assert_eq!(missing["error"]["code"], -32602);
    }

    async fn an_address_has_its_limit(gateway) with [("ip_rate_limit", "1"), ("ip_rate_burst", "2")] {
        let listing = message("tools/list", json!({}));
        let answers = join_all((0..40).map(|_| rpc(gateway, &listing))).await;
        let limited = answers.iter().find(|answer| answer.status == 429).expect("forty at once are too many");
        refused(limited, 429);
        assert!(limited.header("retry-after").parse::<u64>().unwrap() >= 1);
        assert!(!limited.header("ratelimit-policy").is_empty());
    }

    /// A token in an argument is counted in the tool, one in the header on the way in.
    async fn a_token_has_its_limit(gateway) with [("token_rate_limit", "1"), ("token_rate_burst", "2")] {
        let token = log_in(gateway, "ann@example.com").await;
        let balance = tool_call("get_wallet_balance", json!({ "token": token }));
        let answers = join_all((0..40).map(|_| rpc(gateway, &balance))).await;
        let codes: Vec<String> = answers.iter().map(|answer| result(answer)["structuredContent"].to_string()).collect();
        assert!(codes.iter().any(|told| told.contains("RATE_LIMITED") && told.contains("retryAfterSeconds")), "{codes:?}");
        let with_header = || {
            let request = request(gateway, &tool_call("get_wallet_balance", json!({})));
            reply(request.header("authorization", format!("Bearer {token}")))
        };
        let answers = join_all((0..40).map(|_| with_header())).await;
        refused(answers.iter().find(|answer| answer.status == 429).expect("forty at once are too many"), 429);
    }
}
