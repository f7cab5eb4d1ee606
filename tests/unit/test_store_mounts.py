"""A ledger on a network file system is refused unless it is asked for."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from footprint_core.errors import LedgerOpenError
from footprint_observe.store import connect, mounts
from footprint_observe.store.ledger import SqliteLedger
from footprint_observe.store.mounts import kind_of, network_of

HEAD = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 27 0:40 / /mnt/nas rw,relatime shared:7 - nfs4 nas:/export rw,vers=4.2,addr=10.0.0.9
31 30 254:3 / /mnt/nas/disk rw - xfs /dev/vdb rw
32 27 0:41 / /mnt/a\\040b rw shared:9 master:2 - cifs //nas/share rw
33 27 0:42 / /home/ann/remote rw,nosuid - fuse.sshfs ann@far:/ rw,user_id=1000
34 27 0:43 / /var/twice rw - nfs nas:/old rw
35 34 254:4 / /var/twice rw - ext4 /dev/vdc rw
36 27 0:44 / /c rw - 9p C:\\134 rw
37 27 0:45 / /local rw - fuse.mergerfs a:b rw
38 27 8:1 / /usb rw - fuseblk /dev/sda1 rw

a line that is none - nfs
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/data/l.db", "ext4"),
        ("/mnt/nas/l.db", "nfs4"),
        ("/mnt/nas", "nfs4"),
        ("/mnt/nasty/l.db", "ext4"),
        ("/mnt/nas/disk/l.db", "xfs"),
        ("/mnt/a b/l.db", "cifs"),
        ("/home/ann/remote/deep/l.db", "fuse.sshfs"),
        ("/var/twice/l.db", "ext4"),
        ("/c/Users/l.db", "9p"),
        ("/usb/l.db", "fuseblk"),
    ],
)
def test_the_last_of_the_longest_mounts_is_where_a_file_lies(path: str, kind: str) -> None:
    assert kind_of(path, HEAD) == kind


def test_a_text_that_is_no_list_of_mounts_says_nothing() -> None:
    assert kind_of("/data/l.db", "") is None
    assert kind_of("/data/l.db", "27 1 254:0 - ext4\n\x00\n - \n") is None


@pytest.mark.parametrize(
    ("kind", "network"),
    [
        ("ext4", False),
        ("overlay", False),
        ("tmpfs", False),
        ("fuseblk", False),
        ("fuse.mergerfs", False),
        ("fuse.gocryptfs", False),
        ("nfs", True),
        ("cifs", True),
        ("smb3", True),
        ("ceph", True),
        ("lustre", True),
        ("fuse.sshfs", True),
        ("fuse.s3fs", True),
        ("fuse.glusterfs", True),
    ],
)
def test_what_another_machine_holds_too_is_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, network: bool
) -> None:
    listed = tmp_path / "mountinfo"
    listed.write_text(f"27 1 254:0 / / rw,relatime - {kind} source rw\n")
    monkeypatch.setattr(mounts, "_MOUNTS", listed)
    path = tmp_path / "l.db"
    assert network_of(path) == (kind if network else None)
    if not network:
        asyncio.run(SqliteLedger(path).close())
        return
    with pytest.raises(LedgerOpenError, match=rf"network file system \({kind}\)"):
        SqliteLedger(path)
    assert not path.exists()
    asked = SqliteLedger(path, network=True)
    asyncio.run(asked.close())


def test_where_nobody_says_it_is_taken_for_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "_MOUNTS", tmp_path / "none")
    assert network_of(tmp_path / "l.db") is None
    asyncio.run(SqliteLedger(tmp_path / "l.db").close())


def test_a_link_is_followed_to_where_the_file_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "near").symlink_to(tmp_path / "far")
    listed = tmp_path / "mountinfo"
    root = "27 1 254:0 / / rw - ext4 /dev/vda rw"
    listed.write_text(f"{root}\n30 27 0:40 / {os.path.realpath(tmp_path)}/far rw - nfs nas:/ rw\n")
    monkeypatch.setattr(mounts, "_MOUNTS", listed)
    with pytest.raises(LedgerOpenError, match="nfs"):
        connect.open_writer(tmp_path / "near" / "l.db", durability="process", busy_timeout=1.0)


# Mounts a file system of that type, answers the kernel just enough to be looked at, and asks.
REAL = """
import ctypes, os, struct, sys, threading
from pathlib import Path
from footprint_core.errors import LedgerOpenError
from footprint_observe.store.ledger import SqliteLedger

CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000
INIT, LOOKUP, GETATTR, FORGET = 26, 1, 3, 2
ENOENT, ENOSYS = 2, 38
libc = ctypes.CDLL(None, use_errno=True)
at = Path(sys.argv[1])

def must(code, what):
    if code:
        print("cannot", what, os.strerror(ctypes.get_errno()))
        sys.exit(0)

must(libc.unshare(CLONE_NEWNS), "unshare")
must(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "make mounts private")
fd = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fd},rootmode=40000,user_id=0,group_id=0".encode()
must(libc.mount(b"far:/", os.fsencode(at), b"fuse.sshfs", 0, options), "mount")

def serve():
    while True:
        asked = os.read(fd, 1 << 17)
        _, opcode, unique = struct.unpack_from("<IIQ", asked)
        body, error = b"", 0
        if opcode == INIT:
            body = struct.pack("<IIIIHHIIHHIIII", 7, 31, 4096, 0, 0, 0, 4096, 1, 0, 0, 0, 0, 0, 0) + bytes(16)
        elif opcode == GETATTR:
            folder, links, block = 0o40777, 2, 4096
            body = struct.pack("<QII", 1, 0, 0)
            body += struct.pack("<6Q10I", 1, *(0,) * 8, folder, links, 0, 0, 0, block, 0)
        elif opcode == FORGET:
            continue
        else:
            error = -ENOENT if opcode == LOOKUP else -ENOSYS
        os.write(fd, struct.pack("<IiQ", 16 + len(body), error, unique) + body)

threading.Thread(target=serve, daemon=True).start()
try:
    SqliteLedger(at / "l.db")
except LedgerOpenError as error:
    print(error)
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mounts as Linux does")
def test_a_mount_of_the_kernel_is_seen(tmp_path: Path) -> None:
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("needs root and /dev/fuse, to mount a file system")
    at = tmp_path / "far"
    at.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", REAL, os.fspath(at)], capture_output=True, text=True, timeout=60, check=True
    )
    if done.stdout.startswith("cannot"):
        pytest.skip(done.stdout.strip())
    assert "lies on a network file system (fuse.sshfs)" in done.stdout
