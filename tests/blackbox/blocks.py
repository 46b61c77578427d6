"""Prints the code that a page tells its reader to copy.

blocks.py LANGUAGE PAGE: every block fenced as ```LANGUAGE, in order. A page without one fails.
"""

import re
import sys

language, page = sys.argv[1:]
with open(page) as file:
    blocks = re.findall(rf"^```{re.escape(language)}\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
if not blocks:
    sys.exit(f"{page}: no ```{language} block")
print("\n".join(blocks))
