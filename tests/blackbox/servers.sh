# Starts and stops the servers under test. Sourced by ./test, which sets tmp and bin.
pg_url='' pg_user='' pg_programs='' mailbox_pid='' node_pid='' gw_pid='' gw_dir='' gw_log='' gw_env=()

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# until_up PID SECONDS COMMAND...: waits until the command succeeds; fails when the time is up or the server has ended.
until_up() {
  local pid=$1 seconds=$2 since=$SECONDS
  shift 2
  until "$@"; do
    if [ $((SECONDS - since)) -ge "$seconds" ] || ! kill -0 "$pid"; then return 1; fi
    sleep 0.2
  done
}

# answers [CURL'S OPTIONS...] URL: succeeds on every answer, unless -f is among the options.
answers() { curl -sS --max-time 2 -o /dev/null "$@"; }

# end PID: stops a server, if there is one; how it ends does not matter.
end() { [ -z "$1" ] || { kill "$1" && wait "$1"; } 2>/dev/null; }

# PostgreSQL refuses to run as root; any other user will do, so root borrows one.
as_postgres() {
  if [ "$(id -u)" = 0 ]; then (cd "$tmp/pg" && runuser -u "$pg_user" -- "$@"); else "$@"; fi
}

# One throw-away server. Without fsync a crash of the machine would lose data; a crash of the gateway would not.
postgres_start() {
  local programs port
  programs=$(postgres_programs) || return
  port=$(free_port)
  pg_user=$(id -un)
  if [ "$pg_user" = root ]; then pg_user=$(id -un postgres 2>/dev/null || echo nobody); fi
  install -d -o "$pg_user" -m 700 "$tmp/pg"
  as_postgres "$programs/initdb" -D "$tmp/pg/data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync || return
  pg_programs=$programs
  as_postgres "$programs/pg_ctl" -D "$tmp/pg/data" -l "$tmp/pg/log" -w -t 60 start -o \
    "-p $port -k $tmp/pg -c listen_addresses=127.0.0.1 -c max_connections=300 -c fsync=off -c full_page_writes=off" ||
    { cat "$tmp/pg/log"; return 1; }
  pg_url=postgres://postgres@127.0.0.1:$port
}

postgres_stop() {
  [ -z "$pg_programs" ] || as_postgres "$pg_programs/pg_ctl" -D "$tmp/pg/data" -m immediate stop >/dev/null 2>&1
  pg_programs=''
}

# A mail server that keeps what it gets (mailbox.py); it says where it is when it listens.
mailbox_start() {
  "$tools/venv/bin/python" "$bb/mailbox.py" "$tmp/mailbox" >"$tmp/mailbox.told" 2>"$tmp/logs/mailbox.log" &
  mailbox_pid=$!
  until_up $mailbox_pid 30 grep -q . "$tmp/mailbox.told" || { tail -n 40 "$tmp/logs/mailbox.log"; return 1; }
}

mailbox_stop() {
  end "$mailbox_pid"
  mailbox_pid=''
}

# gateway_start NAME [SETTING=VALUE...]: a gateway in a folder of its own; sets api_url, api_key and api_secret.
gateway_start() {
  local port
  port=$(free_port)
  gw_dir=$tmp/gateway-$1
  gw_log=$tmp/logs/gateway-$1.log
  shift
  gw_env=("SIMGATE_LISTEN=127.0.0.1:$port" "$@")
  mkdir "$gw_dir" || return
  (cd "$gw_dir" && exec env "${gw_env[@]}" "$bin" serve) >"$gw_log" 2>&1 &
  gw_pid=$!
  api_url=http://127.0.0.1:$port
  until_up $gw_pid 60 answers -f "$api_url/readyz" || { tail -n 40 "$gw_log"; gateway_kill; return 1; }
  api_key=$(demo_value B2B_KEY) && api_secret=$(demo_value B2B_SECRET)
}

# The demo partner's file, which the gateway writes at its first start.
demo_value() { sed -n "s/^$1=//p" "$gw_dir/simgate-demo.env" | grep .; }

# An operator's command beside the running gateway, on its database.
gateway_command() { (cd "$gw_dir" && env "${gw_env[@]}" "$bin" "$@"); }

# A polite stop must end well, and within 10 s.
gateway_stop() {
  local since=$SECONDS status
  kill -TERM "$gw_pid" || return
  while kill -0 "$gw_pid" 2>/dev/null; do
    if [ $((SECONDS - since)) -gt 10 ]; then
      tail -n 40 "$gw_log"
      echo "still running after $((SECONDS - since)) s"
      gateway_kill
      return 1
    fi
    sleep 0.1
  done
  wait "$gw_pid"
  status=$?
  gw_pid=''
  echo "exit status $status after $((SECONDS - since)) s"
  return $status
}

gateway_kill() {
  [ -z "$gw_pid" ] || { kill -KILL "$gw_pid" && wait "$gw_pid"; } 2>/dev/null
  gw_pid=''
}

# An EVM node with Base's chain id and, at the address of USDC, a token that takes signatures; the payer has some.
chain_start() {
  local port
  port=$(free_port)
  node_url=http://127.0.0.1:$port
  "$anvil" --silent --host 127.0.0.1 --port "$port" --chain-id 8453 --block-time 1 --slots-in-an-epoch 1 \
    --mnemonic-seed-unsafe 3 >"$tmp/logs/anvil.log" 2>&1 &
  node_pid=$!
  until_up $node_pid 30 answers -f -H 'content-type: application/json' \
    -d '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}' "$node_url" || { chain_stop; return 1; }
  timeout --foreground 60 node "$bb/chain.mjs" "$node_url" "$tools/usdc.json" "$payer" "$gas_payer"
}

chain_stop() {
  end "$node_pid"
  node_pid=''
}
