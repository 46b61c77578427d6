"""The journey by the Python SDK, 1.x or 2.x, whichever is installed: python client.py BASE"""
import asyncio
import json
import re
import sys
import time
import urllib.parse
import urllib.request

PLAN = "JP-1GB-7D"
BASE = sys.argv[1]


def fetch(url, body=None, kind="application/json"):
    headers = {"Content-Type": kind} if body is not None else {}
    return urllib.request.urlopen(urllib.request.Request(url, data=body, headers=headers), timeout=60)


async def journey(call_tool, list_tools, name):
    async def call(tool, **arguments):
        failed, text, value = await call_tool(tool, arguments)
        assert json.loads(text) == value, tool
        assert failed is ("error" in value), value
        return value

    async def fine(tool, **arguments):
        value = await call(tool, **arguments)
        assert "error" not in value, value
        return value

    assert len(await list_tools()) == 15
    found = await fine("get_esim_catalog", countryCode="Japan 1GB 7 days")
    assert found["plans"][0]["packageCode"] == PLAN
    stranger = await call("validate_coupon", code="NONE", packageCode=PLAN)
    assert stranger["error"]["httpStatus"] == 401 and "send_agent_otp" in stranger["error"]["message"]

    email = f"{name}-{time.time_ns()}@example.com"
    assert (await fine("send_agent_otp", email=email))["sent"]
    outbox = json.load(fetch(f"{BASE}/sandbox/outbox?email={urllib.parse.quote(email)}"))
    code = re.search(r"\b\d{6}\b", outbox["emails"][0]["text"]).group()
    token = (await fine("verify_agent_otp", email=email, code=code))["token"]

    short = await fine("purchase_esim_with_wallet", packageCode=PLAN, token=token)
    assert short["purchased"] is False
    form = urllib.parse.urlencode({"amountUsd": "50", "means": "USDC BASE"}).encode()
    page = fetch(short["magicLink"], form, "application/x-www-form-urlencoded").read().decode()
    invoice = re.search(r"inv_\w+", page).group()
    assert fetch(f"{BASE}/sandbox/pay", json.dumps({"invoiceId": invoice}).encode()).status == 200
    for _ in range(300):
        if (await fine("get_wallet_balance", token=token))["balanceUsd"] == 50:
            break
        await asyncio.sleep(0.1)
    else:
        raise AssertionError("the money has not arrived")

    purchase = dict(packageCode=PLAN, token=token, idempotencyKey=f"{name}-1")
    bought = await fine("purchase_esim_with_wallet", **purchase)
    again = await fine("purchase_esim_with_wallet", **purchase)
    assert (again["orderId"], again["replayed"]) == (bought["orderId"], True)
    order = bought["orderId"]
    assert (await fine("refresh_esim_usage", orderId=order, token=token))["status"] == "NEW"
    packages = (await fine("get_topup_packages", orderId=order, token=token))["packages"]
    added = await fine("purchase_topup", orderId=order, packageCode=packages[0]["packageCode"], token=token)
    assert added["topUpOrder"]["status"] == "FULFILLED"
    second = await fine("purchase_esim_with_wallet", packageCode=PLAN, token=token)
    cancelled = await fine("cancel_order", orderId=second["orderId"], token=token)
    assert cancelled["status"] == "CANCELLED", cancelled
    orders = await fine("get_user_orders", token=token)
    assert [found["status"] for found in orders["orders"]] == ["CANCELLED", "FULFILLED"]
    moves = await fine("get_wallet_transactions", token=token)
    assert [move["type"] for move in moves["transactions"]] == ["CANCELLED", "ORDER", "TOPUP", "ORDER", "DEPOSIT"]
    print(f"Python SDK, {name}: all done")


async def by_version_2():
    from mcp import Client

    for mode in ("auto", "legacy"):
        async with Client(f"{BASE}/api/mcp", mode=mode) as client:

            async def call_tool(tool, arguments):
                result = await client.call_tool(tool, arguments)
                return result.is_error, result.content[0].text, result.structured_content

            async def list_tools():
                return (await client.list_tools()).tools

            print(client.protocol_version)
            assert (client.protocol_version == "2026-07-28") == (mode == "auto")
            await journey(call_tool, list_tools, f"py2-{mode}")


async def by_version_1():
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(f"{BASE}/api/mcp") as (reader, writer, _), ClientSession(reader, writer) as session:
        await session.initialize()

        async def call_tool(tool, arguments):
            result = await session.call_tool(tool, arguments)
            return result.isError, result.content[0].text, result.structuredContent

        async def list_tools():
            return (await session.list_tools()).tools

        await journey(call_tool, list_tools, "py1")


try:
    from mcp import Client  # noqa: F401
except ImportError:
    asyncio.run(by_version_1())
else:
    asyncio.run(by_version_2())
