"""Whether a ledger file lies on a disk of this machine: on Linux, `/proc/self/mountinfo` knows.

The log of a ledger needs memory that all its processes share, and file locks that hold. Over a network
there is no such memory, and two machines that write would destroy the file.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")

NETWORK: frozenset[str] = frozenset(
    {
        "9p", "acfs", "afs", "afp", "beegfs", "ceph", "cifs", "coda", "davfs", "gfs2", "glusterfs", "gpfs",
        "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "prl_fs", "pvfs2", "smb2", "smb3", "smbfs",
        "vboxsf", "vmhgfs",
    }
)  # fmt: skip
"""File systems whose files another machine holds too, the host of a virtual one included."""

NETWORK_FUSE: frozenset[str] = frozenset(
    {
        "blobfuse", "blobfuse2", "ceph-fuse", "cephfs", "curlftpfs", "davfs2", "gcsfuse", "glusterfs",
        "goofys", "google-drive-ocamlfuse", "hdfs", "httpfs", "juicefs", "JuiceFS", "lizardfs", "mfs",
        "moosefs", "mount-s3", "mountpoint-s3", "onedriver", "rclone", "s3fs", "seaweedfs", "smbnetfs",
        "sshfs", "vmhgfs-fuse", "weed",
    }
)  # fmt: skip
"""Those that are programs: the second part of `fuse.sshfs`."""


def network_of(path: Path) -> str | None:
    """The network file system a file lies on; None on a disk of this machine, or where nobody says.

    Args:
        path: The file, which need not exist yet.
    """
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    kind = kind_of(os.path.realpath(path), mounts)
    return kind if kind is not None and _is_network(kind) else None


def kind_of(path: str, mounts: str) -> str | None:
    """The type of the file system a path lies on; None when no mount holds it.

    Args:
        path: The path, absolute and without links.
        mounts: The text of `mountinfo` (proc_pid_mountinfo(5)): fields, a `-`, the type, the source.
    """
    found: tuple[int, str] | None = None
    for line in mounts.split("\n"):
        before, dash, after = line.partition(" - ")
        fields, behind = before.split(" "), after.split(" ")
        if not dash or len(fields) < 6:
            continue
        point = _ESCAPED.sub(lambda code: chr(int(code[1], 8)), fields[4])
        # Of two mounts at one point the later one is seen.
        if _is_below(path, point) and (found is None or len(point) >= found[0]):
            found = (len(point), behind[0])
    return None if found is None else found[1]


def _is_below(path: str, point: str) -> bool:
    return path == point or path.startswith(f"{point.rstrip('/')}/")


def _is_network(kind: str) -> bool:
    base, _, program = kind.partition(".")
    return kind in NETWORK or (base == "fuse" and (program in NETWORK_FUSE or program in NETWORK))
