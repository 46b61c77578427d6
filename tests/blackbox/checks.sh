# The running binary, seen from outside. Sourced by ./test, which sets bb, tools and tmp.

redocly_lint() {
  REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true \
    "$bb/node_modules/.bin/redocly" lint --config "$bb/redocly.yaml" "$@"
}

spectral_lint() { "$bb/node_modules/.bin/spectral" lint --ruleset "$bb/spectral.yaml" "$@"; }

typescript_client() {
  local npm=$bb/node_modules
  mkdir "$tmp/ts" && ln -s "$npm" "$tmp/ts/node_modules" && cp "$bb"/{order.ts,tsconfig.json,package.json} "$tmp/ts" &&
    "$npm/.bin/openapi-typescript" "$tmp/openapi.json" -o "$tmp/ts/schema.d.ts" &&
    "$npm/.bin/tsc" -p "$tmp/ts" &&
    API_URL=$api_url API_KEY=$api_key API_SECRET=$api_secret timeout --foreground 60 node "$tmp/ts/order.js"
}

python_client() {
  # The generator formats what it made with the ruff it finds.
  PATH=$tools/venv/bin:$PATH openapi-python-client generate --path "$tmp/openapi.json" \
    --output-path "$tmp/py/simgate_client" --meta none --fail-on-warning &&
    API_URL=$api_url API_KEY=$api_key API_SECRET=$api_secret PYTHONPATH=$tmp/py \
      timeout --foreground 60 "$tools/venv/bin/python" "$bb/order.py" "$tmp/openapi.json"
}

# The package needs nothing but Go's own library, so no module is fetched.
go_client() {
  local jar place=$tmp/go
  jar=$("$tools/venv/bin/python" -c 'import openapi_generator_cli as o; print(o.__path__[0])')/openapi-generator.jar &&
    mkdir "$place" && cp "$bb/order.go" "$place/main.go" && printf 'module order\n\ngo 1.19\n' >"$place/go.mod" &&
    java -jar "$jar" generate -g go -i "$tmp/openapi.json" -o "$place/simgate" --package-name simgate \
      --additional-properties=withGoMod=false >"$place/log" || { cat "$place/log"; return 1; }
  (cd "$place" && GOFLAGS=-mod=mod GOPROXY=off GOCACHE=$tools/go go build -o order . &&
    API_URL=$api_url API_KEY=$api_key API_SECRET=$api_secret timeout --foreground 60 ./order)
}

postman_collection() {
  API_URL=$api_url API_KEY=$api_key API_SECRET=$api_secret timeout --foreground 60 node "$bb/postman.mjs"
}

# fuzz SECONDS: requests made from our own description, good and bad; every answer must fit it.
fuzz() {
  local type
  mkdir "$gw_dir/fuzz" && cp "$bb/schemathesis.toml" "$gw_dir/fuzz" || return
  # Codes made up by the fuzzer would never buy anything.
  for type in BASE TOPUP; do
    curl -fsS --max-time 10 -H "X-B2B-Key: $api_key" -H "X-B2B-Secret: $api_secret" \
      "$api_url/api/b2b/v1/plans?country=FR&type=$type" | jq '.plans | sort_by(.priceUsd) | .[:5][].packageCode' || return
  done >"$gw_dir/fuzz/codes.dict"
  (cd "$gw_dir/fuzz" && API_KEY=$api_key API_SECRET=$api_secret timeout --foreground $(($1 + 120)) \
    "$tools/venv/bin/schemathesis" run "$api_url/api/b2b/v1/openapi.json" --origin "$api_url" --max-time "$1" |
    tee out.txt) || { tail -n 20 "$gw_log"; return 1; }
  # When time runs out it skips what is left and still succeeds.
  grep -q 'Scenarios: *[1-9]' "$gw_dir/fuzz/out.txt" || { echo "$1 s were too short for all phases"; return 1; }
}

# The key of the sandbox: a gateway that follows a chain must be given one.
x402_xpub=xpub6Ce9NcJvTk36xtLSrJLZqE7wtgA5deCeYs7rSQtreh4cj6ByPtrg9sD7V2FNFLPnf8heNP3FGkeV9qwfzvZNSd54JoNXVsXFYSYwHsnJxqP
# Throw-away keys: who pays, and who pays for gas.
payer_key=0x0101010101010101010101010101010101010101010101010101010101010101
payer=0x1a642f0E3c3aF545E7AcBD38b07251B3990914F1
gas_key=0x0909090909090909090909090909090909090909090909090909090909090909
gas_payer=0x58DA990A8F4A3a6ca7cb6315d68a140105917352

# In a plain sandbox: nothing was set up for signatures.
sandbox_payers() (
  TOKEN=$(sign_in clients@example.com) || exit
  export TOKEN PAYER_KEY=$payer_key AGENT_URL=$api_url
  timeout --foreground 60 node "$bb/pay-sandbox.mjs" &&
    timeout --foreground 60 "$tools/venv/bin/python" "$bb/pay-sandbox.py"
)

x402_clients() {
  NODE_URL=$node_url API_URL=$api_url PAYER_KEY=$payer_key timeout --foreground 120 node "$bb/pay.mjs"
}

# sign_in EMAIL: a new user's token, by way of the sandbox's outbox.
sign_in() {
  local auth=$api_url/api/agentic/auth otp
  local call=(curl -fsS --max-time 10 -H 'Content-Type: application/json')
  "${call[@]}" -o /dev/null -d "{\"email\": \"$1\"}" "$auth/request-otp" &&
    otp=$(curl -fsS --max-time 10 "$api_url/sandbox/outbox?email=$1" | jq -r '.emails[0].text' | grep -oE '[0-9]{6}') &&
    "${call[@]}" -d "{\"email\": \"$1\", \"otp\": \"$otp\"}" "$auth/verify-otp" | jq -er .token
}

# Fuzzers ask for more codes than a client may have in an hour, so everybody signs in before the first of them.
fuzz_tokens() {
  agent_token=$(sign_in fuzz@example.com) && spare_token=$(sign_in spare@example.com) &&
    customer_token=$(sign_in customer@example.com)
}

# fuzz_agentic SECONDS: the same for the agentic API, with the tokens of two users.
fuzz_agentic() {
  mkdir "$gw_dir/fuzz-agentic" && cp "$bb/schemathesis-agentic.toml" "$gw_dir/fuzz-agentic/schemathesis.toml" || return
  (cd "$gw_dir/fuzz-agentic" && AGENT_TOKEN=$agent_token SPARE_TOKEN=$spare_token timeout --foreground $(($1 + 120)) \
    "$tools/venv/bin/schemathesis" run "$api_url/api/agentic/openapi.json" --origin "$api_url" --max-time "$1") ||
    { tail -n 20 "$gw_log"; return 1; }
  # The run counts only if its token worked to the end.
  curl -fsS --max-time 10 -o /dev/null -H "Authorization: Bearer $agent_token" "$api_url/api/agentic/auth/tokens"
}

# fuzz_consumer SECONDS: the same for the consumer API, with a customer's wallet to spend. `fuzz` has found the plans.
fuzz_consumer() {
  local token=$customer_token
  gateway_command wallet credit customer@example.com 400 --reason fuzzing || return
  mkdir "$gw_dir/fuzz-consumer" && cp "$gw_dir/fuzz/codes.dict" "$gw_dir/fuzz-consumer" &&
    cp "$bb/schemathesis-consumer.toml" "$gw_dir/fuzz-consumer/schemathesis.toml" || return
  # Ids made up by the fuzzer would lead to no order.
  for _ in 1 2 3; do
    curl -fsS --max-time 40 -H "Authorization: Bearer $token" -H 'Content-Type: application/json' \
      -d "{\"packageCode\": $(head -n 1 "$gw_dir/fuzz-consumer/codes.dict")}" "$api_url/api/orders" | jq .orderId || return
  done >"$gw_dir/fuzz-consumer/orders.dict"
  (cd "$gw_dir/fuzz-consumer" && CUSTOMER_TOKEN=$token timeout --foreground $(($1 + 120)) \
    "$tools/venv/bin/schemathesis" run "$api_url/api/consumer/openapi.json" --origin "$api_url" --max-time "$1") ||
    { tail -n 20 "$gw_log"; return 1; }
  # The run counts only if its token worked to the end and bought something.
  curl -fsS --max-time 10 -H "Authorization: Bearer $token" "$api_url/api/orders" | jq -e '.total > 3'
}

# The published client of the consumer API: its calls, and the fields that it reads.
stdio_client() {
  gateway_command coupon create --code JOURNEY --percent 10 &&
    timeout --foreground 120 node "$bb/consumer.mjs" "$api_url" journey
}

# The examples of docs/agents.md, as they stand there.
# agents_typescript FENCE, agents_python FENCE: runs the blocks of docs/agents.md with this fence.
agents_typescript() {
  local place=$tmp/agents-$1
  mkdir "$place" && ln -s "$bb/node_modules" "$place/node_modules" && cp "$bb/package.json" "$place" &&
    sed 's/order.ts/agent.ts/' "$bb/tsconfig.json" >"$place/tsconfig.json" &&
    python3 "$bb/blocks.py" "$1" docs/agents.md >"$place/agent.ts" &&
    "$bb/node_modules/.bin/tsc" -p "$place" && AGENT_URL=$api_url timeout --foreground 60 node "$place/agent.js"
}

agents_python() {
  python3 "$bb/blocks.py" "$1" docs/agents.md >"$tmp/agents-$1.py" &&
    AGENT_URL=$api_url timeout --foreground 60 "$tools/venv/bin/python" "$tmp/agents-$1.py"
}

# as_payer EMAIL EXAMPLE...: an example that pays, with a new user's token. It must end with an eSIM.
as_payer() (
  TOKEN=$(sign_in "$1") || exit
  export TOKEN PAYER_KEY=$payer_key
  "${@:2}" | tee /dev/stderr | grep -q '^LPA:1\$'
)

# The samples of the documentation pages, by a customer of their own for each language.
doc_samples() {
  local language
  gateway_command coupon create --code SUMMER --percent 10 || return
  for language in curl typescript python; do
    TOKEN=$(sign_in "samples-$language@example.com") &&
      gateway_command wallet credit "samples-$language@example.com" 50 --reason samples &&
      TOKEN=$TOKEN API_KEY=$api_key API_SECRET=$api_secret PYTHON=$tools/venv/bin/python \
        timeout --foreground 120 node "$bb/samples.mjs" "$api_url" "$language" || return
  done
}

verify_ledger() {
  gateway_command ledger verify --json | tee /dev/stderr |
    python3 -c 'import json, sys; sys.exit(json.load(sys.stdin)["ok"] is not True)'
}

# fuzz_on DATABASE SECONDS [SETTING=VALUE...]
fuzz_on() {
  local on=$1 seconds=$2
  shift 2
  check "gateway starts on $on" gateway_start "$on" SIMGATE_RATE_LIMIT=0 SIMGATE_IP_RATE_LIMIT=0 SIMGATE_TOKEN_RATE_LIMIT=0 "$@" || return
  check "fuzzers sign in" fuzz_tokens
  check "schemathesis on $on" fuzz "$seconds"
  check "schemathesis, agentic, on $on" fuzz_agentic $((seconds / 3))
  check "schemathesis, consumer, on $on" fuzz_consumer $((seconds / 4))
  check "ledger verify on $on" verify_ledger
  check "gateway stops on $on" gateway_stop
}

# What was not fetched by then is fetched now.
packages() {
  wait "$fetch_pid"
  fetch_pid=''
  install_npm && install_mcp
}

blackbox() {
  check "npm packages, suites and clients" packages || return
  stage "OpenAPI, clients, README"
  if check "gateway starts" gateway_start default; then
    if check "openapi.json" curl -fsS --max-time 10 -o "$tmp/openapi.json" "$api_url/api/b2b/v1/openapi.json"; then
      check "redocly lint" redocly_lint "$tmp/openapi.json"
      check "spectral lint" spectral_lint "$tmp/openapi.json"
      check "TypeScript client orders" typescript_client
      check "Python client orders" python_client
      check "Go client orders" go_client
      check "Postman collection" postman_collection
    fi
    if check "agentic openapi.json" curl -fsS --max-time 10 -o "$tmp/agentic.json" "$api_url/api/agentic/openapi.json"; then
      check "redocly lint, agentic" redocly_lint "$tmp/agentic.json"
      check "spectral lint, agentic" spectral_lint "$tmp/agentic.json"
    fi
    if check "consumer openapi.json" curl -fsS --max-time 10 -o "$tmp/consumer.json" "$api_url/api/consumer/openapi.json"; then
      check "redocly lint, consumer" redocly_lint "$tmp/consumer.json"
      check "spectral lint, consumer" spectral_lint "$tmp/consumer.json"
    fi
    if check "sandbox openapi.json" curl -fsS --max-time 10 -o "$tmp/sandbox.json" "$api_url/sandbox/openapi.json"; then
      check "redocly lint, sandbox" redocly_lint "$tmp/sandbox.json"
      check "spectral lint, sandbox" spectral_lint "$tmp/sandbox.json"
    fi
    check "the published consumer client buys" stdio_client
    check "README as pasted" timeout --foreground 120 python3 "$bb/readme.py" README.md "$gw_dir"
    check "docs/integrate.md as pasted" timeout --foreground 180 python3 "$bb/readme.py" docs/integrate.md "$gw_dir"
    check "docs/integrate.md pasted again" timeout --foreground 180 python3 "$bb/readme.py" docs/integrate.md "$gw_dir"
    check "docs/agents.md: curl" timeout --foreground 120 python3 "$bb/readme.py" docs/agents.md "$gw_dir"
    check "docs/consumer.md: curl" timeout --foreground 60 python3 "$bb/readme.py" docs/consumer.md "$gw_dir"
    check "samples of /docs" doc_samples
    check "docs/agents.md: TypeScript" agents_typescript ts
    check "docs/agents.md: Python" agents_python python
    check "docs/agents.md: TypeScript pays" as_payer ts@example.com agents_typescript typescript
    check "docs/agents.md: Python pays" as_payer py@example.com agents_python py
    check "@x402/fetch, @x402/axios, mppx and Python x402 pay" sandbox_payers
    check "gateway stops" gateway_stop
  fi

  stage "Payment by signature"
  if check "a chain with USDC" chain_start; then
    check "gateway starts with a settler" gateway_start x402 SIMGATE_STAGING=true "SIMGATE_EVM_XPUB=$x402_xpub" \
      "SIMGATE_BASE_RPC=$node_url" SIMGATE_BASE_USDT=off SIMGATE_BASE_POLL_MS=200 \
      SIMGATE_X402_SETTLER=local "SIMGATE_BASE_GAS_KEY=$gas_key" &&
      check "@x402/fetch and mppx pay" x402_clients &&
      check "ledger verify after payments" verify_ledger
    check "gateway with a settler stops" gateway_stop
    chain_stop
  fi

  webhook_receivers
  tool_gateway
  pages_for_people

  stage "Fuzzing"
  fuzz_on SQLite 120
  check "empty database" "$pg_programs/psql" -q "$pg_url/postgres" -c 'create database fuzz' &&
    fuzz_on PostgreSQL 75 "SIMGATE_DATABASE_URL=$pg_url/fuzz"
}
