"""Break laws one at a time in a copy of the source; the tests that are named must go red.

python tests/laws/mutate.py            20 mutants, drawn by the commit
python tests/laws/mutate.py --all      every mutant
python tests/laws/mutate.py --law ID   those of one law
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from laws.book import ROOT, Mutant, mutants

DRAWN = 20
SECONDS = 180
COPIED = ("footprint_core", "footprint_observe", "recorders", "tests", "pyproject.toml", "README.md")


def drawn(found: tuple[Mutant, ...], seed: str, count: int = DRAWN) -> list[Mutant]:
    """Mutants of `count` different laws; the same for the same seed."""
    laws = sorted({mutant.law for mutant in found})
    chance = random.Random(int(hashlib.sha256(seed.encode()).hexdigest(), 16))
    picked = chance.sample(laws, min(count, len(laws)))
    return [chance.choice([mutant for mutant in found if mutant.law == law]) for law in picked]


def survived(mutant: Mutant) -> str | None:
    """Apply a mutant to a copy and run its tests; what is wrong when they do not go red."""
    with tempfile.TemporaryDirectory() as folder:
        for name in COPIED:
            source, target = ROOT / name, Path(folder) / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", ".*_cache"))
            else:
                shutil.copy(source, target)
        broken = Path(folder) / mutant.file
        text = broken.read_text()
        if text.count(mutant.old) != 1:
            return f"{mutant.law}: {mutant.old!r} stands {text.count(mutant.old)} times in {mutant.file}"
        broken.write_text(text.replace(mutant.old, mutant.new))
        # The copy first on the path: an editable installation would import the original.
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *mutant.tests],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    if run.returncode == 1:
        return None
    what = "survived" if run.returncode == 0 else f"could not be judged (pytest ended with {run.returncode})"
    return f"{mutant.law}: {mutant.old!r} -> {mutant.new!r} in {mutant.file} {what}\n{run.stdout[-2000:]}"


def main() -> int:
    """Judge the mutants that were asked for; 1 when one survived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--law", action="append", default=[])
    options = parser.parse_args()
    found = mutants()
    if options.law:
        chosen = [mutant for mutant in found if mutant.law in options.law]
    elif options.all:
        chosen = list(found)
    else:
        chosen = drawn(found, commit())
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        wrong = [text for text in pool.map(survived, chosen) if text is not None]
    for text in wrong:
        print(text)
    print(
        f"{len(chosen) - len(wrong)} of {len(chosen)} mutants were found: {', '.join(m.law for m in chosen)}"
    )
    return 1 if wrong or not chosen else 0


def commit() -> str:
    """The commit, which draws the mutants."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "no commit"


if __name__ == "__main__":
    raise SystemExit(main())
