"""The command that serves a ledger: what it refuses, how it ends, and that it stays on this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from browsed import LONG, SECONDS, files, serving
from commanded import demonstrate, environment, footprint, refused

NOWHERE = "192.0.2.1"
"""No address of this machine: what should have been refused before is then not served for ever."""

_OFFLINE = """
import socket, sys
def refuse(self, address):
    raise AssertionError("nothing is fetched")
socket.socket.connect = refuse
from footprint_observe.cli import main
main()
"""


@pytest.mark.parametrize(
    ("made", "said"),
    [(None, "There is no ledger file"), (b"no database at all", "no SQLite database"), (b"", "no ledger")],
)
def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path, made: bytes | None, said: str) -> None:
    path = tmp_path / "l.db"
    if made is not None:
        path.write_bytes(made)
    assert said in refused("serve", "--db", str(path), "--port", "0", code=3)
    assert files(tmp_path) == (set() if made is None else {"l.db"})


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert "is a folder" in refused("serve", "--db", str(tmp_path), code=3)


def test_what_is_there_and_no_file_is_not_called_missing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "l.db")
    assert "is no file that holds something" in refused("serve", "--db", str(tmp_path / "l.db"), code=3)
    assert "a file; give its path" in refused("serve", "--db", ":memory:", code=3)


@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf", "0", "1e9"])
def test_a_timeout_is_a_number_of_seconds(tmp_path: Path, seconds: str) -> None:
    path = demonstrate(tmp_path / "l.db")
    said = refused("serve", "--db", path, "--host", NOWHERE, "--timeout", seconds, code=2)
    assert "'--timeout'" in said


def test_a_port_that_is_in_use_is_refused(tmp_path: Path) -> None:
    path = demonstrate(tmp_path / "l.db")
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = str(taken.getsockname()[1])
        said = refused("serve", "--db", path, "--port", port, code=2)
    assert f"port {port} (Address already in use)" in said


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a b", NOWHERE, "x" * 80, ""])
def test_a_host_that_is_none_of_this_machine_is_refused(tmp_path: Path, host: str) -> None:
    path = demonstrate(tmp_path / "l.db")
    said = refused("serve", "--db", path, "--port", "0", "--host", host, code=2)
    assert "this machine" in said or "Nothing can listen" in said


@pytest.mark.parametrize(
    "token",
    ["short", "x" * 15, "x" * 513, "   ", "\N{SNOWMAN}" * 20, "two\nlines of a token that is long"],
)
def test_a_token_that_is_guessed_or_cannot_be_sent_is_refused(tmp_path: Path, token: str) -> None:
    ask = ("serve", "--db", demonstrate(tmp_path / "l.db"), "--host", NOWHERE)
    said = refused(*ask, code=2, env={"FOOTPRINT_TOKEN": token})
    assert "A token has at least 16 printable ASCII characters" in said
    assert token not in said
    (tmp_path / "token").write_text(token, encoding="utf-8")
    refused(*ask, "--token-file", str(tmp_path / "token"), code=2)
    for content in (b"", b"\xff" * 20, b"x" * 1_000_000):
        (tmp_path / "other").write_bytes(content)
        said = refused(*ask, "--token-file", str(tmp_path / "other"), code=2)
        assert "A token has at least 16 printable ASCII characters" in said


def test_without_the_extra_one_sentence_says_what_to_install(tmp_path: Path) -> None:
    path = demonstrate(tmp_path / "l.db")
    without = "import sys; sys.modules['datasette_dashboards'] = None\n"
    program = f"{without}from footprint_observe.cli import main\nmain()"
    command = [sys.executable, "-c", program, "serve", "--db", path]
    found = subprocess.run(
        command, capture_output=True, text=True, env=environment(), timeout=SECONDS, check=False
    )
    assert found.returncode == 2
    assert "install footprint-ledger[datasette]" in found.stderr
    assert (found.stderr.count("\n"), found.stdout) == (1, "")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_cleanly_with_a_question_under_way(tmp_path: Path, how: signal.Signals) -> None:
    path = Path(demonstrate(tmp_path / "l.db"))
    # The question is not waited for: it would take longer than this test waits for anything.
    with serving(path, "--timeout", "3600") as running, ThreadPoolExecutor(1) as asker:
        answer = asker.submit(running.sql, LONG)
        assert _within(lambda: path in running.opened())
        running.process.send_signal(how)
        assert answer.result(SECONDS).status == 503
        out, err = running.process.communicate(timeout=SECONDS)
    assert (running.process.returncode, out, err) == (0, "", "")
    assert files(tmp_path) == {"l.db"}


@pytest.mark.parametrize(("signals", "code"), [(1, 0), (2, 130)])
def test_whoever_does_not_take_an_answer_is_not_waited_for(tmp_path: Path, signals: int, code: int) -> None:
    with serving(Path(demonstrate(tmp_path / "l.db"))) as running:
        slow = socket.create_connection(("127.0.0.1", running.port), timeout=SECONDS)
        with closing(slow):
            asked = "select+hex(zeroblob(10000000))"
            slow.sendall(f"GET /ledger.json?sql={asked} HTTP/1.1\r\nHost: {running.url[7:]}\r\n\r\n".encode())
            assert slow.recv(4) == b"HTTP"
            running.process.send_signal(signal.SIGINT)
            assert _within(lambda: _is_closed(running.port))
            if signals > 1:
                running.process.send_signal(signal.SIGINT)
            out, err = running.process.communicate(timeout=SECONDS)
    assert (running.process.returncode, out, err) == (code, "", "")


def _is_closed(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=SECONDS).close()
    except ConnectionError:
        return True
    return False


def _within(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
    return True


def test_it_says_where_it_is(tmp_path: Path) -> None:
    with serving(Path(demonstrate(tmp_path / "l.db"))) as running:
        assert running.said == [f"l.db is served at http://127.0.0.1:{running.port}/ until Ctrl-C.\n"]


def test_it_listens_to_this_machine_alone_unless_told(tmp_path: Path) -> None:
    with serving(Path(demonstrate(tmp_path / "l.db"))) as running:
        assert running.get("/").status == 200
        with pytest.raises(ConnectionRefusedError):
            running.get("/", to="127.0.0.2")


def test_nothing_is_fetched_and_nothing_is_kept_at_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    path = demonstrate(tmp_path / "l.db")
    command = [sys.executable, "-c", _OFFLINE, "serve", "--db", path, "--port", "0"]
    env = environment(HOME=str(home), XDG_CONFIG_HOME=str(home), XDG_CACHE_HOME=str(home))
    with subprocess.Popen(
        command, env=env, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "is served at" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=SECONDS) == ("", "")
    assert not files(home)


def test_datasette_is_loaded_by_this_command_alone() -> None:
    program = (
        "import sys, footprint_observe.cli.serve; print('datasette' in sys.modules, 'uvicorn' in sys.modules)"
    )
    command = [sys.executable, "-c", program]
    assert subprocess.check_output(command, text=True) == "False False\n"


def test_no_option_takes_the_token_itself() -> None:
    said = footprint("serve", "--help").output
    assert "--token-file" in said
    assert "--token " not in said
