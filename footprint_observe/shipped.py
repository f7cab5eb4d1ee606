"""Where the dashboards and the configurations of viewers are: in the installed package, or in a clone."""

from __future__ import annotations

from pathlib import Path

from footprint_core.errors import FootprintError

_HERE = Path(__file__).parent


def dashboards(package: Path = _HERE) -> Path:
    """The folder of what `footprint dashboards export` copies and `footprint serve` shows.

    A wheel has it inside the package; in a clone it stands beside it.

    Args:
        package: The folder of the package `footprint_observe`.

    Raises:
        FootprintError: It is not there.
    """
    installed, beside = package / "dashboards", package.parent / "dashboards"
    if installed.is_dir():
        return installed
    # Beside an installed package stands whatever else is installed, maybe somebody's own `dashboards`.
    if beside.is_dir() and (package.parent / "pyproject.toml").is_file():
        return beside
    raise FootprintError("The dashboards are missing from this installation; install footprint-ledger again.")
