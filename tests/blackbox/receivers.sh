# The receivers in examples/receivers, fed by a gateway. Sourced by ./test, which sets bb, tools and tmp.
receiver=() receiver_pid='' receiver_url=''

# receiver_build LANGUAGE: sets the command that runs it.
receiver_build() {
  local from=$PWD/examples/receivers place=$tmp/receiver-$1
  mkdir "$place" || return
  case $1 in
    TypeScript)
      receiver=(node "$place/receiver.js")
      ln -s "$bb/node_modules" "$place/node_modules" && cp "$from/receiver.ts" "$bb/package.json" "$place" &&
        sed 's/order.ts/receiver.ts/' "$bb/tsconfig.json" >"$place/tsconfig.json" &&
        "$bb/node_modules/.bin/tsc" -p "$place" --skipLibCheck
      ;;
    Python) receiver=("$tools/venv/bin/python" "$from/receiver.py") ;;
    Go)
      receiver=("$place/receiver")
      GOPROXY=off GOCACHE=$tools/go go build -o "$place/receiver" "$from/receiver.go"
      ;;
  esac
}

# receiver_start SECRET FILE: what it prints goes into the file.
receiver_start() {
  PORT=${receiver_url##*:} WEBHOOK_SECRET=$1 "${receiver[@]}" >"$2" &
  receiver_pid=$!
  until_up $receiver_pid 20 answers "$receiver_url"
}

receiver_stop() {
  end "$receiver_pid"
  receiver_pid=''
}

# as_partner PATH [CURL'S OPTIONS...]: a call with the demo partner's key.
as_partner() {
  curl -fsS --max-time 40 -H "X-B2B-Key: $api_key" -H "X-B2B-Secret: $api_secret" -H 'Content-Type: application/json' \
    "${@:2}" "$api_url/api/b2b/v1/$1"
}

in_sandbox() { curl -fsS --max-time 10 -H 'Content-Type: application/json' "${@:2}" "$api_url/sandbox/$1"; }

buy() { as_partner orders -d "{\"packageCode\": \"${1:-JP-1GB-7D}\"}" | jq -er ".order.${2:-id}"; }

buy_and_cancel() { as_partner "orders/$(buy)/cancel" -X POST; }

# A partner's day: orders side by side, each given back at once, and one that is filled up and used up.
do_business() {
  local iccid buyer buyers=()
  for _ in 1 2 3 4 5; do
    buy_and_cancel &
    buyers+=($!)
  done
  iccid=$(buy JP-1GB-7D iccid) && as_partner "orders/$iccid/topup" -d '{"packageCode": "JP-1GB-7D-TOPUP"}' &&
    in_sandbox usage -d "{\"iccid\": \"$iccid\", \"status\": \"DEPLETED\"}" && as_partner "orders/$iccid/usage" || return
  for buyer in "${buyers[@]}"; do wait "$buyer" || return; done
}

log_end() { as_partner 'events?limit=100' | jq -er 'select(.hasMore | not).nextAfter'; }

# logged PLACE: the events after this place in the log, as receivers print them.
logged() {
  as_partner "events?limit=100&after=$1" | jq -er '.events[] |
    "\(.type) \(.sequence) \(.data.id // .data.orderId // .data.invoiceId // "balance") \(.id)"'
}

# heard_all PLACE FILE: every event after the place was printed once, and those of each order in their order.
heard_all() {
  logged "$1" >"$tmp/logged" && diff <(sort -s -k 3,3 "$tmp/logged") <(grep -v '^webhook.test ' "$2" | sort -s -k 3,3)
}

is_active() { as_partner webhooks | jq -e --arg id "$1" '.webhooks[] | select(.id == $id).status == "ACTIVE"'; }

# accepted_all PLACE WEBHOOK: the gateway knows of every event after the place that it was accepted.
accepted_all() {
  diff <(logged "$1" | cut -d ' ' -f 4 | sort) <(as_partner "webhooks/$2/deliveries?limit=100" |
    jq -r '.deliveries[] | select(.accepted and .type != "webhook.test").eventId' | sort -u)
}

# knock STATUS SECRET AGE SIGNED SENT: a delivery that was signed by hand for one body and has another. The receiver must
# answer with this status.
knock() {
  local id=evt_knock at=$(($(date +%s) - $3)) key sum status
  key=$(printf %s "${2#whsec_}" | base64 -d | od -An -tx1 -v | tr -d ' \n')
  sum=$(printf %s "$id.$at.$4" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | base64)
  status=$(curl -sS --max-time 10 -o "$tmp/answer" -w '%{http_code}' -H "webhook-id: $id" -H "webhook-timestamp: $at" \
    -H "webhook-signature: v1,c29tZWJvZHkgZWxzZSdz v1,$sum" --data-binary "$5" "$receiver_url")
  [ "$status" = "$1" ] || { echo "$status instead of $1 for $5, $3 s old"; return 1; }
}

# What must be refused, and what must not: then it was the flaw that was refused.
knocks() {
  local body='{"id":"evt_knock","type":"order.fulfilled","sequence":1,"data":{"id":"ord_1"}}'
  knock 401 "$1" 0 "$body" "${body/ord_1/ord_2}" && knock 401 "$1" 600 "$body" "$body" &&
    knock 401 "$1" -600 "$body" "$body" && knock 401 whsec_c29tZWJvZHkgZWxzZSdz 0 "$body" "$body" || return
  ! grep knock "$2" && knock 204 "$1" 0 "$body" "$body" && knock 204 "$1" 200 "$body" "$body" &&
    [ "$(grep -c knock "$2")" = 1 ]
}

# receives LANGUAGE: a partner's way from a new webhook to a new secret.
receives() {
  local heard=$tmp/heard-$1 made id secret place delivery told
  receiver_url=http://127.0.0.1:$(free_port)
  receiver_build "$1" && place=$(log_end) &&
    made=$(as_partner webhooks -d "{\"url\": \"$receiver_url\"}") && id=$(jq -er .webhook.id <<<"$made") &&
    secret=$(jq -er .secret <<<"$made") || return
  # What happens before it is active is for it, too.
  buy && receiver_start "$secret" "$heard" &&
    as_partner "webhooks/$id/test" -X POST | jq -e '.delivery.accepted and .webhook.status == "ACTIVE"' &&
    do_business && until_up $receiver_pid 20 heard_all "$place" "$heard" &&
    until_up $receiver_pid 20 accepted_all "$place" "$id" || return
  # At another address it is tested again, without being asked.
  as_partner "webhooks/$id" -X PATCH -d "{\"url\": \"$receiver_url/moved\"}" | jq -e '.webhook.status == "PENDING"' &&
    until_up $receiver_pid 20 is_active "$id" || return
  # The same again has the same id, and is not handled twice.
  delivery=$(as_partner "webhooks/$id/deliveries?limit=100" |
    jq -er '[.deliveries[] | select(.type == "order.cancelled")][0].id') &&
    as_partner "webhooks/$id/deliveries/$delivery/redeliver" -X POST --retry 5 | jq -e .delivery.accepted || return
  # Both secrets are good for a day: the old one in the receiver that runs, then the new one.
  made=$(as_partner "webhooks/$id/rotate" -X POST) && buy && until_up $receiver_pid 20 heard_all "$place" "$heard" &&
    knocks "$secret" "$heard" && until_up $receiver_pid 20 accepted_all "$place" "$id" || return
  receiver_stop
  secret=$(jq -er .secret <<<"$made") && place=$(tail -n 1 "$tmp/logged" | cut -d ' ' -f 4) &&
    receiver_start "$secret" "$heard-new" && buy && until_up $receiver_pid 20 heard_all "$place" "$heard-new" &&
    as_partner "webhooks/$id" -X DELETE || return
  told=$(grep -vE 'knock|^webhook.test' "$heard" | cut -d ' ' -f 1 | sort | uniq -c | xargs)
  [ "$told" = "1 esim.status_changed 4 esim.usage_threshold 5 order.cancelled 8 order.fulfilled 1 topup.completed" ] ||
    { echo "$told"; return 1; }
}

# The last receiver gets events without a webhook, signed with the secret that `webhook listen` prints. One of them is made by
# hand.
listens() {
  local heard=$tmp/heard-listen said=$tmp/listen place listener secret
  receiver_url=http://127.0.0.1:$(free_port)
  place=$(log_end) || return
  (cd "$gw_dir" && exec timeout 60 env "${gw_env[@]}" "$bin" webhook listen --forward "$receiver_url" --count 3) 2>"$said" &
  listener=$!
  until_up $listener 20 grep -q whsec_ "$said" && secret=$(grep -o 'whsec_[^ ]*' "$said") &&
    receiver_start "$secret" "$heard" && buy_and_cancel &&
    in_sandbox events -d '{"type": "wallet.low_balance"}' && wait $listener &&
    heard_all "$place" "$heard" && [ "$(wc -l <"$heard")" = 3 ] || { cat "$said"; return 1; }
}

webhook_receivers() {
  local language
  stage "Webhooks"
  check "gateway starts for webhooks" gateway_start webhooks SIMGATE_WEBHOOK_ALLOW_PRIVATE=true || return
  for language in TypeScript Python Go; do
    check "receiver in $language" receives $language
    receiver_stop
  done
  check "webhook listen to a receiver" listens
  receiver_stop
  check "gateway for webhooks stops" gateway_stop
}
