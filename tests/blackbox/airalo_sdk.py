"""The vendor's SDK for Python makes the journey of our adapter against our fake, and says what it understood.

airalo_sdk.py URL CLIENT SECRET BASE TOPUP ORDER_ID TOPUP_ID FOLDER
"""

import json
import sys
from pathlib import Path

from airalo import Airalo
from airalo.constants.api_constants import ApiConstants
from airalo.helpers.cached import Cached

url, client_id, client_secret, base, topup, order_id, topup_id, folder = sys.argv[1:]
ApiConstants.PRODUCTION_URL = f"{url}/v2/"
Cached._cache_path = Path(folder)

airalo = Airalo({"client_id": client_id, "client_secret": client_secret})
local = airalo.get_local_packages(True, 1000)
everywhere = airalo.get_global_packages(True, 1000)
order = airalo.order(base, 1, order_id)
iccid = order["data"]["sims"][0]["iccid"]
filled = airalo.topup(topup, iccid, topup_id)
usage = airalo.sim_usage(iccid)
others = {
    "topups": airalo.get_sim_topups(iccid),
    "history": airalo.get_sim_package_history(iccid),
    "instructions": airalo.get_installation_instructions({"iccid": iccid, "language": "en"}),
}
try:
    airalo.order("no-such-package", 1, order_id)
    refusal = ""
except Exception as error:
    refusal = str(error)
said = {"local": local, "global": everywhere, "order": order, "filled": filled, "usage": usage}
print(json.dumps({**said, "others": others, "refusal": refusal}))
