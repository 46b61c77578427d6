"""A partner's first program, on the package that openapi-python-client made: it must buy an eSIM."""

import inspect
import json
import os
import sys
import uuid
from importlib import import_module

from openapi_python_client.strings import PythonIdentifier
from simgate_client import Client

with open(sys.argv[1]) as file:
    paths = json.load(file)["paths"]


def operation(method, path):
    """The generated function; its module is named after the tag and the id of the operation."""
    described = paths[path][method]
    names = (described.get("tags", ["default"])[0], described["operationId"])
    tag, name = (PythonIdentifier(name, "") for name in names)
    return import_module(f"simgate_client.api.{tag}.{name}").sync_detailed


def call(method, path, *args, **fields):
    function = operation(method, path)
    if "body" in fields:
        model = inspect.signature(function).parameters["body"].annotation
        fields["body"] = model.from_dict(fields["body"])
    answer = function(*args, client=client, **fields)
    assert answer.status_code == 200, answer
    return answer.parsed


client = Client(
    base_url=os.environ["API_URL"],
    headers={"X-B2B-Key": os.environ["API_KEY"], "X-B2B-Secret": os.environ["API_SECRET"]},
)
plan = call("get", "/api/b2b/v1/plans", country="FR").plans[0]

reference = f"python-{uuid.uuid4()}"
wanted = {"packageCode": plan.package_code, "partnerRefId": reference}
bought = call("post", "/api/b2b/v1/orders", body=wanted).order
assert bought.charged_usd == plan.price_usd, bought

read = call("get", "/api/b2b/v1/orders/{id}", bought.id).order
assert (read.partner_ref_id, read.status, read.iccid) == (reference, "FULFILLED", bought.iccid), read
