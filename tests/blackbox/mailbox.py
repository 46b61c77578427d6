"""A mail server for the tests: three ports (plain; STARTTLS with a login; TLS), every mail a JSON file in a folder.

Usage: mailbox.py FOLDER. It prints what SIMGATE_TEST_SMTP is to be set to, and then serves until it is killed.
A recipient called `refused…` is refused for good, `later…` at its first two tries.
"""

import collections
import email
import email.policy
import json
import pathlib
import socket
import ssl
import subprocess
import sys
import threading
import uuid

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

folder = pathlib.Path(sys.argv[1])
tries = collections.Counter()


class Mailbox:
    def __init__(self, door):
        self.door = door

    async def handle_RCPT(self, server, session, envelope, address, options):
        tries[address] += 1
        if address.startswith("refused"):
            return "550 5.1.1 no such mailbox " + address
        if address.startswith("later") and tries[address] <= 2:
            return "451 4.2.1 not now"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        parsed = email.message_from_bytes(envelope.content, policy=email.policy.default)
        parts = {part.get_content_type(): part.get_content() for part in parsed.walk() if not part.is_multipart()}
        mail = {
            "door": self.door,
            "tls": session.ssl is not None or self.door == "tls",
            "login": session.auth_data if isinstance(session.auth_data, str) else None,
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "headers": [[name, str(value)] for name, value in parsed.items()],
            "type": parsed.get_content_type(),
            "parts": parts,
        }
        # Whoever looks into the folder must never see half of a mail.
        name = uuid.uuid4().hex
        (folder / f"{name}.part").write_text(json.dumps(mail))
        (folder / f"{name}.part").rename(folder / f"{name}.json")
        return "250 OK"


def authenticate(server, session, envelope, mechanism, data):
    login, password = data.login.decode(), data.password.decode()
    good = (login, password) == ("codes", "correct horse")
    return AuthResult(success=good, handled=False, auth_data=login)


def certificate():
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE",
         "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context, cert


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


folder.mkdir(parents=True, exist_ok=True)
context, cert = certificate()
doors = {
    "plain": {},
    "starttls": {"tls_context": context, "require_starttls": True, "auth_required": True, "authenticator": authenticate},
    "tls": {"ssl_context": context},
}
told = [f"folder={folder}", f"cert={cert}"]
for door, options in doors.items():
    controller = Controller(Mailbox(door), hostname="127.0.0.1", port=free_port(), server_hostname="localhost", **options)
    controller.start()
    told.append(f"{door}={controller.port}")
print(",".join(told), flush=True)
threading.Event().wait()
