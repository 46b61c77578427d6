"""The x402 client for Python pays in a plain sandbox, where nothing was set up for it."""

import os
import time

import requests
from eth_account import Account
from x402 import x402ClientSync
from x402.http.clients.requests import wrapRequestsWithPayment
from x402.mechanisms.evm.exact.register import register_exact_evm_client
from x402.mechanisms.evm.signers import EthAccountSigner

url = os.environ["AGENT_URL"] + "/api/agentic/checkout"
headers = {"Authorization": f"Bearer {os.environ['TOKEN']}"}
wish = {"packageCode": "JP-1GB-7D"}
offers = requests.post(url, headers=headers, json=wish).json()["accepts"]

client = x402ClientSync()
register_exact_evm_client(client, EthAccountSigner(Account.from_key(os.environ["PAYER_KEY"])))
client.set_spend_controls({
    "allowed_assets": [
        {"network": offer["network"], "asset": offer["asset"], "max_amount_per_payment": "20000000"}
        for offer in offers
    ]
})
answer = wrapRequestsWithPayment(requests.Session(), client).post(url, headers=headers, json=wish)
assert answer.status_code in (200, 202), answer.text
order = answer.json()
while order["status"] not in ("COMPLETED", "FAILED"):
    time.sleep(0.2)
    order = requests.get(order["payment"]["pollingUrl"]).json()
print(order["esim"]["lpaString"])
