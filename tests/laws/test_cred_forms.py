"""A secret that a tool gives back is taken out in whatever form clients of services write it."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from footprint_core import Answer, MemoryLedger, ToolContext, static_credentials, tool
from footprint_core.providers import call, reply
from story import describe, run

SECRET = 'p/w "ä" 90%'


def written(secret: str) -> dict[str, Any]:
    return {
        "as it is": f"401 for {secret}!",
        "in an address": f"https://api/?token={quote(secret, safe='')}&x=1",
        "in json": json.dumps({"token": secret}, ensure_ascii=False),
        "in ascii json": json.dumps({"token": secret}),
        "in percent with slashes": f"https://api/{quote(secret)}/x?t={quote_plus(secret)}",
        "in small percent": quote(secret, safe="").lower(),
        "in a header": "Basic " + base64.b64encode(f"ada:{secret}".encode()).decode(),
        "in another header": "Basic " + base64.b64encode(f"bob1:{secret}!".encode()).decode(),
        "as encodeURIComponent writes it": quote(secret, safe="!*'()~"),
        "in part": quote(secret, safe='/+="'),
        "in hex": secret.encode().hex(),
        "in python": repr({"token": secret}),
        "in base64": base64.b64encode(secret.encode()).decode(),
        "as bytes": secret.encode(),
        "as a key": {secret: 1},
    }


@pytest.mark.parametrize("form", list(written(SECRET)))
def test_a_secret_is_taken_out_in_every_form_clients_write_it(form: str) -> None:
    @tool(needs="bank")
    def send(context: ToolContext) -> Any:
        assert context.credential is not None
        return [written(context.credential.secret)[form], "kept"]

    ledger = MemoryLedger()
    builder, model = describe([reply(calls=[call("c", "send", {})]), reply(text="ok")], send, ledger=ledger)
    out = run(builder.credentials(static_credentials({"bank": SECRET})).build().run("go"))
    assert isinstance(out, Answer)
    read = model.requests[-1].messages[-1].text
    everything = read + repr(ledger.entries(out.run_id))
    middle = base64.b64encode(SECRET.encode()).decode()[4:-6]
    for way in (
        SECRET,
        middle,
        SECRET.encode().hex(),
        quote(SECRET),
        quote_plus(SECRET),
        quote(SECRET, safe=""),
        base64.b64encode(SECRET.encode()).decode(),
        'p/w \\"',
    ):
        assert way not in everything
    assert "kept" in read
    assert ("[credential]" in read) is (form != "as bytes")
    assert ("[not JSON: bytes]" in read) is (form == "as bytes")


def test_a_secret_that_is_a_number_or_ends_in_a_newline_is_taken_out_and_two_keys_stay_two() -> None:
    @tool(needs="bank")
    def send(context: ToolContext) -> Any:
        return {"pin": 12345678, "12345678": "12345678", "3132333435363738": 123456789}

    builder, model = describe([reply(calls=[call("c", "send", {})]), reply(text="ok")], send)
    run(builder.credentials(static_credentials({"bank": "12345678\n"})).build().run("go"))
    assert json.loads(model.requests[-1].messages[-1].text) == {
        "pin": "[credential]",
        "[credential]": "[credential]",
        "[credential]~": 123456789,
    }
