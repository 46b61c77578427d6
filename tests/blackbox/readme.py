"""Runs what the README tells a newcomer to paste.

readme.py README FOLDER: every ```sh block that calls curl or reads the demo partner's file runs in order in
one shell, in FOLDER, where a gateway runs. Blocks that start it or run the tests are left out, and so are
those tagged ```console. Any command that fails, or any HTTP error but 402, fails the whole.
"""

import re
import subprocess
import sys

BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# curl alone calls a 404 a success. A 402 is one: it asks for a payment, as it should.
PROLOGUE = """set -euo pipefail
curl() {
  local status=0 said
  said=$(mktemp)
  command curl --fail-with-body --max-time 40 "$@" 2>"$said" || status=$?
  if grep -q 'error: 402$' "$said"; then status=0; else cat "$said" >&2; fi
  rm "$said"
  return $status
}
"""

readme, folder = sys.argv[1:]
with open(readme) as file:
    text = file.read()
script = PROLOGUE
calls = 0
for block in BLOCK.finditer(text):
    body = block[1]
    if re.search(r"cargo run|\./test\b", body) or not re.search(r"\bcurl\b|simgate-demo\.env", body):
        continue
    calls += len(re.findall(r"\bcurl\b", body))
    line = text.count("\n", 0, block.start()) + 1
    script += f"echo; echo '--- {readme}:{line}'\n{body}\n"

if calls == 0:
    sys.exit(f"{readme}: no ```sh block calls curl")
sys.exit(subprocess.run(["bash", "-c", script], cwd=folder, stdin=subprocess.DEVNULL).returncode)
