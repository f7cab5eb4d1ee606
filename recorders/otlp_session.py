"""The HTTP session of an exporter, for which an answer that no collector gives is no success.

The exporters take every status below 400 for success and read no answer. So a redirect, a web page at a
mistaken port, and a collector that says it rejected what it got would all pass for spans that arrived.
"""

from __future__ import annotations

import os
import re
from typing import Any

import requests
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

_PROTOBUF = "application/x-protobuf"
_PROVIDER = re.compile(r"OTEL_PYTHON_EXPORTER_OTLP_HTTP_(\w+_)?CREDENTIAL_PROVIDER")
# Misdirected Request: no exporter tries it again.
_MISDIRECTED = 421


def collector_session() -> requests.Session | None:
    """The session; None where the environment names one of its own, which is the application's to judge."""
    if any(_PROVIDER.fullmatch(name) for name in os.environ):
        return None
    session = requests.Session()
    session.hooks["response"].append(_judge)
    return session


def _judge(response: requests.Response, **_: Any) -> requests.Response:
    if response.ok and not _taken(response):
        response.status_code = _MISDIRECTED
    return response


def _taken(response: requests.Response) -> bool:
    """Whether this is what a collector says to what it takes, all of it."""
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if response.status_code >= 300 or kind == "text/html":
        return False
    if kind != _PROTOBUF:
        return True
    try:
        # The answer about metrics has the same form: how many were rejected, and a text.
        answer = ExportTraceServiceResponse.FromString(response.content)
    except DecodeError:
        return False
    rejected: int = answer.partial_success.rejected_spans
    return rejected == 0
