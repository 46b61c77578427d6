"""Receives webhooks of simgate: checks each delivery, handles each event once, and answers at once.

pip install standardwebhooks
PORT=3000 WEBHOOK_SECRET=whsec_… python3 receiver.py
"""

import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

PORT = int(os.environ.get("PORT", "3000"))
WEBHOOK = Webhook(os.environ["WEBHOOK_SECRET"])
LARGEST = 1_000_000

# A shop keeps both in its database, and changes them in one transaction with what an event does there.
seen = set()
highest = {}
lock = threading.Lock()


def handle(event):
    """Only note it down here. Slow work comes after the answer."""
    data = event["data"]
    if event["type"] == "webhook.test":
        about = event["id"]
    else:
        about = data.get("id") or data.get("orderId") or data.get("invoiceId") or "balance"
    # Behind what we know, after a replay for example: do not write an old state over a newer one.
    late = event["sequence"] <= highest.get(about, 0)
    if not late:
        highest[about] = event["sequence"]
    print(event["type"], event["sequence"], about, event["id"] + (" late" if late else ""), flush=True)


class Receiver(BaseHTTPRequestHandler):
    timeout = 10

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LARGEST:
            return self.answer(413)
        # The signature is over these bytes, so they are checked before anything reads them as JSON.
        body = self.rfile.read(int(length))
        try:
            event = WEBHOOK.verify(body, dict(self.headers))
        except (WebhookVerificationError, ValueError) as error:  # ValueError: text that cannot be decoded
            print("refused:", error, file=sys.stderr)
            return self.answer(401)
        # Deliveries come side by side. One that comes again has the same id, and is accepted, so that it is not sent a
        # third time. What cannot be handled gets no answer, is not in `seen`, and is sent again.
        with lock:
            if event["id"] not in seen:
                handle(event)
                seen.add(event["id"])
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


print(f"listening on 127.0.0.1:{PORT}", file=sys.stderr)
ThreadingHTTPServer(("127.0.0.1", PORT), Receiver).serve_forever()
