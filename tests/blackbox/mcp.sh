# The tool gateway, seen by the official suite, linters and clients. Sourced by ./test, which sets bb, tools, tmp and bin.
mcp=$bb/mcp
node22=''
fixtures_pid=''

# The suite wants a newer Node than most machines have; its builds come as npm packages, one for each system. Without a lock
# file: it would have to name them all, and package mirrors do not have them all.
install_node() {
  local build
  build=node-$(node -p 'process.platform + "-" + process.arch') || return
  node22=$tools/node22/node_modules/$build/bin
  [ -x "$node22/node" ] && return
  mkdir -p "$tools/node22" &&
    npm install --prefix "$tools/node22" --no-save --no-package-lock --ignore-scripts --no-audit --no-fund "$build@22.23.3"
}

# venv NAME REQUIREMENTS: two releases of one library need an environment each.
venv() {
  cmp -s "$2" "$tools/$1/.installed" && return
  python3 -m venv --clear "$tools/$1" && "$tools/$1/bin/pip" install -q -r "$2" && cp "$2" "$tools/$1/.installed"
}

install_mcp() {
  install_node && venv mcp1 "$mcp/requirements-1.txt" && venv mcp2 "$mcp/requirements-2.txt" || return
  cmp -s "$mcp/package-lock.json" "$mcp/node_modules/.installed" && return
  # Not `npm ci`, which wants the builds of all systems in the lock file.
  (cd "$mcp" && npm install --no-save --ignore-scripts --no-audit --no-fund) &&
    cp "$mcp/package-lock.json" "$mcp/node_modules/.installed"
}

# In Node 22, with the tools of the suite.
in_node() { (cd "$mcp" && PATH=$node22:$mcp/node_modules/.bin:$PATH timeout --foreground 300 "$@"); }

# conformance FOLDER URL ARGUMENTS...: the suite of this package against a server.
conformance() {
  local package=$1 url=$2
  shift 2
  in_node node "node_modules/$package/dist/index.js" server --url "$url" -o "$(mktemp -d -p "$tmp")" "$@"
}

# Our door with the suite's own tools behind it.
fixtures_start() {
  local port
  port=$(free_port)
  fixtures_url=http://127.0.0.1:$port/api/mcp
  "$(dirname "$bin")/examples/conformance" "127.0.0.1:$port" >"$tmp/logs/fixtures.log" 2>&1 &
  fixtures_pid=$!
  until_up $fixtures_pid 30 answers "$fixtures_url"
}

fixtures_stop() {
  end "$fixtures_pid"
  fixtures_pid=''
}

# Warnings come on stderr and do not fail the inspector; here they fail the check.
inspector() {
  in_node mcp-inspector --cli "$api_url/api/mcp" --transport http --method tools/list --strict 2>"$tmp/warnings" || return
  if [ -s "$tmp/warnings" ]; then
    cat "$tmp/warnings"
    return 1
  fi
  in_node mcp-inspector --cli "$api_url/api/mcp" --transport http --method tools/call \
    --tool-name get_esim_catalog --tool-arg countryCode=JP
}

# The examples of docs/tools.md, as they stand there, with a customer's token.
tools_python() (
  TOKEN=$(sign_in tools-python@example.com) && export TOKEN &&
    python3 "$bb/blocks.py" python docs/tools.md >"$tmp/tools.py" &&
    AGENT_URL=$api_url timeout --foreground 60 "$tools/mcp2/bin/python" "$tmp/tools.py" | tee /dev/stderr | grep -q '^wallet: 0 USD$'
)

tools_typescript() (
  local code
  TOKEN=$(sign_in tools-typescript@example.com) && export TOKEN AGENT_URL=$api_url &&
    code=$(python3 "$bb/blocks.py" ts docs/tools.md) &&
    in_node node --experimental-strip-types --input-type=module-typescript --eval "$code" | tee /dev/stderr | grep -q '^wallet: 0 USD$'
)

tool_gateway() {
  stage "Tool gateway"
  if check "fixtures start" fixtures_start; then
    check "conformance 0.1.16, our door" conformance @modelcontextprotocol/conformance "$fixtures_url" --suite all
    check "conformance 2026-07-28, our door" conformance conformance-next "$fixtures_url" --requirements 2026-07-28
    fixtures_stop
  fi
  check "gateway starts for tools" gateway_start tools SIMGATE_IP_RATE_LIMIT=0 SIMGATE_TOKEN_RATE_LIMIT=0 || return
  check "conformance 0.1.16, the gateway" conformance @modelcontextprotocol/conformance "$api_url/api/mcp" --suite all \
    --expected-failures "$mcp/not-applicable-0.1.16.yml"
  check "conformance 2026-07-28, the gateway" conformance conformance-next "$api_url/api/mcp" --requirements 2026-07-28 \
    --expected-failures "$mcp/not-applicable-2026-07-28.yml"
  check "inspector --strict" inspector
  check "tdqs lint" "$tools/mcp2/bin/tdqs" lint --url "$api_url/api/mcp" --fail-on warning
  check "docs/tools.md: curl" timeout --foreground 60 python3 "$bb/readme.py" docs/tools.md "$gw_dir"
  check "docs/tools.md: Python" tools_python
  check "docs/tools.md: TypeScript" tools_typescript
  check "TypeScript SDK 1.x buys" in_node node client-v1.mjs "$api_url"
  check "TypeScript SDK 2.x buys" in_node node client-v2.mjs "$api_url"
  check "Python SDK 1.x buys" timeout --foreground 120 "$tools/mcp1/bin/python" "$mcp/client.py" "$api_url"
  check "Python SDK 2.x buys" timeout --foreground 120 "$tools/mcp2/bin/python" "$mcp/client.py" "$api_url"
  check "ledger verify after tools" verify_ledger
  check "gateway for tools stops" gateway_stop
}
