"""The command line: `python -m plimsoll` and the script `plimsoll`."""

import os
import signal
import sys

from . import _native


def main() -> None:
    # Python's handlers run between its own instructions, and a command is one: the system's default ends it at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    code = _native.run(["plimsoll", *sys.argv[1:]])
    # Nothing of Python's is open, and a thread of the command must not hold the process.
    os._exit(code)


if __name__ == "__main__":
    main()
