"""The journey of `tests/it/suppliers/esim_access.rs`, made with esimaccess-python.

Usage: esimaccess.py URL ACCESS_CODE FIRST_ORDER TOP_UP SECOND_ORDER. It prints what the SDK was told, as one JSON object.
"""
import json
import sys
from urllib.parse import urlsplit

import httpx
from esimaccess_python import Package, PageParam, authenticate

url, code, first, top_up, second = sys.argv[1:]
fake = urlsplit(url)


class ToTheFake(httpx.HTTPTransport):
    """The SDK knows one address only: its requests are led to the fake, path and all."""

    def handle_request(self, request):
        assert request.url.path.startswith(fake.path + "/"), request.url
        request.url = request.url.copy_with(scheme=fake.scheme, host=fake.hostname, port=fake.port)
        return super().handle_request(request)


client = Package(httpx.Client(headers=authenticate(code).headers, transport=ToTheFake(), trust_env=False))
page = PageParam(pageSize=5, pageNum=1)


def taken(answer):
    assert answer["success"] is True and answer["errorCode"] in (None, "0"), answer
    return answer["obj"]


def bought(transaction, package):
    info = [{"packageCode": package["packageCode"], "count": 1, "price": package["price"]}]
    ordered = taken(client.order(transactionId=transaction, amount=package["price"], packageInfoList=info))
    assert ordered["transactionId"] == transaction, ordered
    for _ in range(50):
        answer = client.query(pager=page, orderNo=ordered["orderNo"])
        if not answer["success"]:
            assert answer["errorCode"] == "200010", answer
            continue
        [esim] = answer["obj"]["esimList"]
        if esim["esimStatus"] == "GOT_RESOURCE":
            assert answer["obj"]["pager"]["total"] == 1, answer
            return esim
    raise SystemExit("no profile came")


def iccid(esim):
    return str(esim["iccid"])


told = {"balance": taken(client.balance())["balance"]}
bases = {package["packageCode"]: package for package in taken(client.list(type="BASE"))["packageList"]}
bundles = {package["packageCode"]: package for package in taken(client.list(type="TOPUP"))["packageList"]}
esim = bought(first, bases["JC172"])
bundle = bundles["TOPUP_JC172"]
filled = taken(client.topup(iccid=iccid(esim), packageCode=bundle["packageCode"], transactionId=top_up, amount=bundle["price"]))
[read] = taken(client.query(pager=page, iccid=iccid(esim)))["esimList"]
assert filled["transactionId"] == top_up and filled["totalVolume"] == read["totalVolume"], (filled, read)
other = bought(second, bases["JC172"])
taken(client.cancel(iccid=iccid(other)))
told["left"] = taken(client.balance())["balance"]
told["profiles"] = [[e["esimTranNo"], iccid(e), e["ac"]] for e in (esim, other)]
told["volume"] = read["totalVolume"]
print(json.dumps(told))
