"""The folder in which every client works: small sources, a bulky log, a large table, a test with one failure.

The plan of the scripted provider (`crates/testkit/src/provider/plan.rs`) names these files. The same at every run.
"""

import json
from pathlib import Path

METER = '''"""Reads meters and keeps their sums."""

from parts.small import rounded
from parts.large import TABLE

CEILING = 250


class Meter:
    """One meter of the plant, known by its number."""

    def __init__(self, number):
        self.number = number
        self.readings = []

    def reading(self, value):
        """Keeps a value that is within the ceiling."""
        if value > CEILING:
            raise ValueError(f"meter {self.number}: {value} is above {CEILING}")
        self.readings.append(rounded(value))

    def total(self):
        return sum(self.readings)

    def place(self):
        return TABLE[self.number % len(TABLE)]
'''

SMALL = '''"""Small things that every meter needs."""


def rounded(value):
    return round(value, 2)


def reading(text):
    """Parses `NUMBER=VALUE`."""
    number, value = text.split("=")
    return int(number), float(value)
'''

CHECK = '''"""Runs the cases; one of them fails until the ceiling is right."""

import sys

from meter import CEILING


def main():
    failed = []
    for case in range(600):
        expected = 251 if case == 417 else case % 250
        if expected > CEILING:
            failed.append(case)
            print(f"FAIL case_{case:04d}: expected {expected}, ceiling is {CEILING}")
        else:
            print(f"ok   case_{case:04d}: meter {case} reads {expected}, within the ceiling, in 0.{case % 97:02d} ms")
    print(f"{600 - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
'''


def make(folder: Path) -> None:
    """Writes the workspace into `folder`."""
    (folder / "parts").mkdir(parents=True)
    (folder / "meter.py").write_text(METER + methods(60, 8))
    (folder / "parts/__init__.py").write_text("")
    (folder / "parts/small.py").write_text(SMALL)
    names = ",\n    ".join(f'"hall {at // 40}, row {at % 40}, shelf {at * 7 % 12}"' for at in range(400))
    (folder / "parts/large.py").write_text(f'"""Where meters stand."""\n\nTABLE = [\n    {names},\n]\n' + methods(40, 5))
    (folder / "check.py").write_text(CHECK)
    days = (f"2026-{day // 28 % 12 + 1:02d}-{day % 28 + 1:02d} change {day * 7919 % 99991:05d}: meter {day % 600} was "
            f"read by worker {day % 13}, value {day * 31 % 250}, no remark\n" for day in range(450))
    (folder / "history.log").write_text("".join(days))
    rows = [{"number": at, "place": f"hall {at % 10}", "value": at * 37 % 250, "checked": at % 3 == 0}
            for at in range(700)]
    rows[523]["key"] = "HERON-4417"
    (folder / "table.json").write_text(json.dumps(rows, indent=1))


def methods(count, lines):
    """Functions to make a source file as long as such files are."""
    parts = []
    for at in range(count):
        body = "\n".join(f"    step_{at}_{line} = values[{line}] * {at * 13 + line} + {line * 3}" for line in range(lines))
        parts.append(f"\n\ndef part_{at}(values):\n    \"\"\"Part {at} of the account.\"\"\"\n{body}\n    return step_{at}_0\n")
    return "".join(parts)
