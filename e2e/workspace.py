"""The working folder of every client: small sources, a bulky log, a large table, a test with one failure.

The plans of the scripted provider (`crates/testkit/src/provider/plan.rs`, `plans.rs`) name these files. Every run makes the same ones.
"""

import json
from pathlib import Path

import generated

# Plans by name, with the tool turns of each.
PLANS = {"mending": 14, "short": 4, "nine": 26, "mixed": 26, "again": 20}
# The edits of a plan: a file, and text that it contains at the end.
EDITS = {"mending": [("meter.py", "CEILING = 251")],
         "mixed": [("src/engine.py", "LIMIT = 41"), ("src/store.py", "RETRIES = 4")],
         "again": [("again/west.py", "LIMIT = 41"), ("again/south.py", "LIMIT = 41")]}

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


TESTS = '''"""Runs the tests of the service; what it prints is the same at every run."""

from pathlib import Path

LIMIT = int(next(line.split("=")[1] for line in Path("src/engine.py").read_text().splitlines()
                 if line.startswith("LIMIT = ")))
for case in range(400):
    print(f"tests/test_{case // 20:02d}.py::test_case_{case:03d} PASSED in {case * 37 % 911} us")
if LIMIT < 41:
    print("tests/test_20.py::test_limit FAILED: AssertionError: 40 is not 41")
print(f"400 passed, {int(LIMIT < 41)} failed")
'''


def make(folder: Path, plan: str = "mending") -> None:
    """Writes the workspace of a plan into `folder`."""
    common(folder)
    if plan == "nine":
        for at in range(26):
            write(folder / f"nine/part_{at:02d}.py", generated.source(f"nine {at}", 9000))
    if plan == "again":
        for name in ["north", "south", "east", "west", "yard", "gate", "tower"]:
            write(folder / f"again/{name}.py", "LIMIT = 40\n\n" + generated.source(name, 11000))
    if plan == "mixed":
        sizes = {"engine": 20000, "store": 15000, "routes": 12000, "settings": 6000, "models": 18000, "views": 10000}
        heads = {"engine": "LIMIT = 40\n\n", "store": "RETRIES = 3\n\n"}
        for name, size in sizes.items():
            write(folder / f"src/{name}.py", heads.get(name, "") + generated.source(name, size))
        write(folder / "logs/build.log", generated.build_log(60000))
        write(folder / "logs/server.log", generated.server_log(100000))
        write(folder / "data/rows.json", generated.table("rows", 95000))
        write(folder / "data/users.json", generated.table("users", 25000))
        write(folder / "run_tests.py", TESTS)


def missing(folder: Path, plan: str) -> list[str]:
    """Returns the edits of a plan that were not made."""
    return [f"{name} was not changed" for name, text in EDITS.get(plan, []) if text not in (folder / name).read_text()]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def common(folder: Path) -> None:
    """Writes the files of all plans."""
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
    """Returns functions that fill a source file to a usual length."""
    parts = []
    for at in range(count):
        body = "\n".join(f"    step_{at}_{line} = values[{line}] * {at * 13 + line} + {line * 3}" for line in range(lines))
        parts.append(f"\n\ndef part_{at}(values):\n    \"\"\"Part {at} of the account.\"\"\"\n{body}\n    return step_{at}_0\n")
    return "".join(parts)
