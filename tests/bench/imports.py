"""What `import footprint_core` adds to a program that imports asyncio, json and sqlite3 anyway.

Run it as a program; it is no test. Processes alternate, and each figure is the median of them.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

PROCESSES = 15
BASE = "import asyncio, json, sqlite3"


def seconds(statement: str) -> float:
    """One process from start to end, which may keep what it compiled for the next."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True, timeout=60, env=env)
    return time.perf_counter() - began


def main() -> None:
    """Print the difference."""
    seconds(f"{BASE}, footprint_core")
    pairs = [(seconds(BASE), seconds(f"{BASE}, footprint_core")) for _ in range(PROCESSES)]
    base = statistics.median(one for one, _ in pairs) * 1000
    added = statistics.median(two - one for one, two in pairs) * 1000
    print(f"import footprint_core adds {added:.0f} ms to the {base:.0f} ms of `{BASE}`")


if __name__ == "__main__":
    main()
