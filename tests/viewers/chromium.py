"""A headless Chromium, driven through the WebDriver protocol of its chromedriver: plain HTTP and JSON."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

_SECONDS = 60
_STARTED = re.compile(r"started successfully on port (\d+)")


class Page:
    """One window of the browser."""

    def __init__(self, driver: str, session: str) -> None:
        self._driver = driver
        self._session = session

    def open(self, url: str) -> None:
        """Go to an address, and wait until it has loaded; what was complained about before is forgotten."""
        self.complaints()
        self._ask("url", url=url)

    def run(self, script: str, *args: object) -> Any:
        """What a script in the page returns."""
        return self._ask("execute/sync", script=script, args=list(args))

    def texts(self, selector: str) -> list[str]:
        """What a reader sees of every element that matches, in order."""
        found = self.run(
            "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText)", selector
        )
        return [str(text).strip() for text in found]

    def wait(self, condition: str) -> None:
        """Wait until an expression in the page is true."""
        deadline = time.monotonic() + _SECONDS
        while not self.run(f"return Boolean({condition})"):
            assert time.monotonic() < deadline, f"{condition} never came about: {self.texts('body')}"

    def complaints(self) -> list[str]:
        """What the browser logged as an error: scripts that failed, requests that were refused."""
        return [
            entry["message"] for entry in self._ask("se/log", type="browser") if entry["level"] == "SEVERE"
        ]

    def picture(self, *, width: int) -> bytes:
        """A PNG of the whole page, as wide as that."""
        # What is high enough for a small window leaves no room below the page; the window has a frame.
        self._ask("window/rect", width=width, height=300)
        height = self.run("return document.documentElement.scrollHeight + outerHeight - innerHeight")
        self._ask("window/rect", width=width, height=height)
        self.wait("innerHeight >= document.documentElement.scrollHeight")
        return base64.b64decode(self._ask("screenshot"))

    def _ask(self, command: str, **given: object) -> Any:
        url = f"{self._driver}/session/{self._session}/{command}"
        return _asked(url, None if command == "screenshot" else given)


@contextmanager
def chromium(*, width: int = 1360, height: int = 1000) -> Generator[Page]:
    """A browser with a new, empty profile; the test is skipped where there is none."""
    driver, browser = shutil.which("chromedriver"), shutil.which("chromium")
    if driver is None or browser is None:
        pytest.skip("needs chromium and chromedriver: apt-get install chromium chromium-driver")
    with TemporaryDirectory() as profile, _started(driver, Path(profile)) as address:
        session = _asked(f"{address}/session", _wanted(browser, profile, width, height))["sessionId"]
        try:
            yield Page(address, session)
        finally:
            _asked(f"{address}/session/{session}", method="DELETE")


@contextmanager
def _started(driver: str, folder: Path) -> Generator[str]:
    with subprocess.Popen(
        [driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            port = next(found[1] for line in process.stdout if (found := _STARTED.search(line)))
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _wanted(browser: str, profile: str, width: int, height: int) -> dict[str, Any]:
    flags = (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--hide-scrollbars",
        f"--user-data-dir={profile}",
        f"--window-size={width},{height}",
    )
    options = {"binary": browser, "args": flags}
    wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
    return {"capabilities": {"alwaysMatch": wanted}}


def _asked(url: str, given: object = None, *, method: str | None = None) -> Any:
    body = None if given is None else json.dumps(given).encode()
    request = Request(url, data=body, headers={"content-type": "application/json"}, method=method)
    try:
        with urlopen(request, timeout=_SECONDS) as answer:
            return json.load(answer)["value"]
    except HTTPError as error:
        raise AssertionError(json.load(error)["value"]["message"]) from None
