# The pages for people, seen in a browser. Sourced by ./test, which sets bb and tmp.

pages_in_a_browser() {
  gateway_command coupon create --code TRIP10 --percent 10 &&
    API_URL=$api_url API_KEY=$api_key API_SECRET=$api_secret GATEWAY_DIR=$gw_dir CHROMIUM=$(command -v chromium) \
      timeout --foreground 1200 node "$bb/pages.mjs"
}

pages_for_people() {
  stage "Pages"
  check "gateway starts for pages" gateway_start pages SIMGATE_IP_RATE_LIMIT=0 SIMGATE_ARBITRUM_CONFIRMATIONS=100000 \
    SIMGATE_ANSWER_WITHIN_MS=300 SIMGATE_SUPPLIER_TIMEOUT_MS=1000 || return
  check "every page, axe, keyboard" pages_in_a_browser
  check "gateway for pages stops" gateway_stop
}
