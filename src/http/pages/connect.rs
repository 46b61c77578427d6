//! How the usual clients of language models are led to the tool gateway: what to paste where. docs/tools.md has the same
//! with a login.

use serde_json::{Value, json};

/// What the tools are called among others of a client.
const NAME: &str = "esim";

/// One client.
pub struct Client {
    pub name: &'static str,
    /// Where the text goes.
    pub place: &'static str,
    pub text: String,
}

pub fn clients(url: &str) -> [Client; 4] {
    let through = json!(["-y", "mcp-remote", url, "--transport", "http-only"]);
    [
        Client {
            name: "Claude Code",
            place: "In a terminal:",
            text: format!("claude mcp add --transport http {NAME} {url}"),
        },
        Client {
            name: "Cursor",
            place: "In .cursor/mcp.json of a project, or ~/.cursor/mcp.json:",
            text: pretty(&json!({ "mcpServers": { NAME: { "url": url } } })),
        },
        Client {
            name: "VS Code",
            place: "In .vscode/mcp.json:",
            text: pretty(&json!({ "servers": { NAME: { "type": "http", "url": url } } })),
        },
        Client {
            name: "Clients that only start programs",
            place: "In the client's file of servers; it needs Node.js:",
            text: pretty(&json!({ "mcpServers": { NAME: { "command": "npx", "args": through } } })),
        },
    ]
}

fn pretty(value: &Value) -> String {
    format!("{value:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_gets_the_address_in_a_text_it_can_read() {
        for client in clients("https://esim.example/api/mcp") {
            assert!(client.text.contains("https://esim.example/api/mcp"), "{}", client.name);
            if client.text.starts_with('{') {
                assert!(serde_json::from_str::<Value>(&client.text).is_ok(), "{}", client.text);
            }
        }
    }
}
