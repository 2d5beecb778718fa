"""What the processor says it used: RAPL, the energy counters of Intel's and AMD's processors under Linux.

The counters stand in /sys/class/powercap/intel-rapl:N, one a processor package, in microjoule. They count the
whole package, what it uses at rest and other programs included. Linux lets only root read them unless told
otherwise (CVE-2020-8694): `sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj`.

Source: Linux, Documentation/power/powercap/powercap.rst.
"""

from __future__ import annotations

from pathlib import Path

POWERCAP = Path("/sys/class/powercap")


class EnergyCounter:
    """Reads the counters of all packages; no packages where nothing is counted or nothing may be read.

    Args:
        folder: where the counters stand.

    Example:
        >>> counter = EnergyCounter()
        >>> before = counter.read()
        >>> counter.used(before, counter.read()) >= 0
        True
    """

    def __init__(self, folder: Path = POWERCAP) -> None:
        # Only packages: intel-rapl:0:0 is a part of intel-rapl:0, and psys holds all of them again.
        zones = sorted(folder.glob("intel-rapl:*")) if folder.is_dir() else []
        self._packages = [zone for zone in zones if zone.name.count(":") == 1 and _is_package(zone)]
        self._ranges = [_number(zone / "max_energy_range_uj") or 0 for zone in self._packages]

    @property
    def readable(self) -> bool:
        """Whether this machine counts energy and lets us read it."""
        return bool(self._packages)

    def read(self) -> list[int]:
        """The counters, in microjoule, one a package."""
        return [_number(zone / "energy_uj") or 0 for zone in self._packages]

    def used(self, before: list[int], after: list[int]) -> float:
        """Millijoule between two readings. A counter that went round its range once is counted on.

        Args:
            before, after: from `read`.
        """
        microjoule = 0
        for first, last, size in zip(before, after, self._ranges, strict=True):
            microjoule += last - first if last >= first else last - first + size
        return microjoule / 1e3


def _is_package(zone: Path) -> bool:
    try:
        package = (zone / "name").read_text().startswith("package")
    except OSError:
        return False
    return package and _number(zone / "energy_uj") is not None


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None
