# The pages for people, seen in a browser. Sourced by ./test, which sets bb and tmp.

# in_a_browser PROGRAM: one of the programs beside us, with what it needs to know about the gateway.
in_a_browser() {
  env "${gw_env[@]}" API_URL="$api_url" API_KEY="$api_key" API_SECRET="$api_secret" GATEWAY_DIR="$gw_dir" SIMGATE="$bin" \
    CHROMIUM="$(command -v chromium)" timeout --foreground 1200 node "$bb/$1.mjs"
}

# A coupon, and a browser.
with_coupon() { gateway_command coupon create --code TRIP10 --percent 10 && in_a_browser "$1"; }

in_lighthouse() { PORT=$(free_port) in_a_browser lighthouse; }

hostile_texts() {
  gateway_command coupon create --code HOSTILE --percent 10 --description "$hostile" && in_a_browser hostile
}

pages_for_people() {
  local hostile=$'\'"><img src=x onerror=alert(1)>'
  stage "Pages"
  check "gateway starts for pages" gateway_start pages SIMGATE_IP_RATE_LIMIT=0 SIMGATE_ARBITRUM_CONFIRMATIONS=100000 \
    SIMGATE_ANSWER_WITHIN_MS=300 SIMGATE_SUPPLIER_TIMEOUT_MS=1000 || return
  check "every page, axe, keyboard" with_coupon pages
  check "gateway for pages stops" gateway_stop
  check "gateway starts for journeys" gateway_start journeys SIMGATE_IP_RATE_LIMIT=0 SIMGATE_BASE_CONFIRMATIONS=25 \
    SIMGATE_TRUSTED_PROXIES=127.0.0.1/32 SIMGATE_WEBHOOK_ALLOW_PRIVATE=true || return
  check "Lighthouse" in_lighthouse && sed 's/^/    | /' "$tmp/logs/Lighthouse.log"
  check "journeys of buyers" with_coupon journeys
  check "journeys of partners" in_a_browser partners
  check "gateway for journeys stops" gateway_stop
  check "gateway starts for hostile texts" gateway_start hostile SIMGATE_IP_RATE_LIMIT=0 "SIMGATE_BRAND_NAME=$hostile" \
    "SIMGATE_SUPPORT_CONTACT=$hostile" SIMGATE_WEBHOOK_ALLOW_PRIVATE=true || return
  check "hostile texts are texts" hostile_texts
  check "gateway for hostile texts stops" gateway_stop
}
