# What the checks need and a fresh Debian machine may lack. Sourced by ./test, which sets bb, contracts and tools.
anvil=''

# The newest PostgreSQL; Debian keeps the server programs off the PATH.
postgres_programs() {
  local found
  found=$(command -v initdb || ls -d /usr/lib/postgresql/*/bin/initdb 2>/dev/null | sort -V | tail -n 1)
  [ -n "$found" ] && dirname "$(readlink -f "$found")"
}

install_packages() {
  local missing=() as_root=()
  postgres_programs || missing+=(postgresql)
  PATH=$PATH:/usr/sbin command -v pgbouncer || missing+=(pgbouncer)
  command -v curl || missing+=(curl)
  command -v jq || missing+=(jq)
  command -v openssl || missing+=(openssl)
  command -v faketime || missing+=(faketime)
  # Debian splits pip for new environments off from Python itself.
  python3 -c 'import ensurepip, venv' || missing+=(python3-venv)
  if wants blackbox; then
    command -v chromium || missing+=(chromium)
    command -v java || missing+=(default-jre-headless)
    command -v go || missing+=(golang-go)
  fi
  [ ${#missing[@]} != 0 ] || return 0
  [ "$(id -u)" = 0 ] || as_root=(sudo -n)
  "${as_root[@]}" apt-get update -q &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -q --no-install-recommends "${missing[@]}"
}

# A copy of the pinned list beside what was installed from it says whether that is still current.
install_npm() {
  cmp -s "$bb/package-lock.json" "$bb/node_modules/.installed" && return
  (cd "$bb" && npm ci --ignore-scripts --no-audit --no-fund) && cp "$bb/package-lock.json" "$bb/node_modules/.installed"
}

# A real EVM node, and the tokens that tests put on it. Without a lock file: it would have to name the node's
# builds for all systems, and package mirrors do not have them all.
install_anvil() {
  local inputs known=$tools/contracts.inputs
  if ! cmp -s "$contracts/package.json" "$contracts/node_modules/.installed"; then
    (cd "$contracts" && npm install --no-package-lock --ignore-scripts --no-audit --no-fund) &&
      cp "$contracts/package.json" "$contracts/node_modules/.installed" || return
  fi
  inputs=$(cat "$contracts"/{Token.sol,Usdc.sol,compile.mjs,package.json} | sha256sum) && mkdir -p "$tools" || return
  if [ "$inputs" != "$(cat "$known")" ]; then
    node "$contracts/compile.mjs" "$tools" && echo "$inputs" >"$known" || return
  fi
  anvil=$(ls "$contracts"/node_modules/@foundry-rs/anvil-*/bin/anvil) && "$anvil" --version
}

install_python() {
  cmp -s "$bb/requirements.txt" "$tools/venv/.installed" && return
  python3 -m venv --clear "$tools/venv" && "$tools/venv/bin/pip" install -q -r "$bb/requirements.txt" &&
    cp "$bb/requirements.txt" "$tools/venv/.installed"
}
