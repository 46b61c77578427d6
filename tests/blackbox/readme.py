"""Runs what a document tells a newcomer to paste.

readme.py DOCUMENT FOLDER: every ```sh block runs in order in one shell, in FOLDER, where a gateway runs. Blocks
that start it or run the tests are left out, and so are those tagged ```console. Any command that fails, or any HTTP error but 402, fails the whole. A block that shows an
error says so in the line above it, which a reader does not see: `<!-- answers 503 -->`. That error must come.
"""

import re
import subprocess
import sys

BLOCK = re.compile(r"^(?:<!-- answers (\d{3}) -->\n)?```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# curl alone calls a 404 a success. A 402 is one: it asks for a payment, as it should.
PROLOGUE = """set -euo pipefail
seen=$(mktemp)
trap 'rm "$seen"' EXIT
curl() {
  local status=0 said
  said=$(mktemp)
  command curl --fail-with-body --max-time 40 "$@" 2>"$said" || status=$?
  if grep -qE "error: (402|${answer:-402})$" "$said"; then
    status=0
    sed 's/.*error: //' "$said" >>"$seen"
  else
    cat "$said" >&2
  fi
  rm "$said"
  return $status
}
"""

document, folder = sys.argv[1:]
with open(document) as file:
    text = file.read()
script = PROLOGUE
calls = 0
for block in BLOCK.finditer(text):
    answer, body = block[1] or "", block[2]
    if re.search(r"cargo run|\./test\b", body):
        continue
    calls += len(re.findall(r"\bcurl\b", body))
    line = text.count("\n", 0, block.start(2))
    script += f"echo; echo '--- {document}:{line}'\nanswer={answer}\n: >\"$seen\"\n{body}\n"
    if answer:
        script += f"grep -qx {answer} \"$seen\" || {{ echo 'nothing was answered with {answer}'; exit 1; }}\n"

if calls == 0:
    sys.exit(f"{document}: no ```sh block calls curl")
sys.exit(subprocess.run(["bash", "-c", script], cwd=folder, stdin=subprocess.DEVNULL).returncode)
