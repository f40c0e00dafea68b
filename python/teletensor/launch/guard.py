"""Kills the process groups of a launcher that was killed, and removes its temporary folder, which is the argument. Runs as
a process of its own, by path, without this package.

PR_SET_PDEATHSIG ends the ranks themselves when their launcher is killed, but not the processes that a rank has started,
such as the program of a shell script. Standard input contains lines "+PGID" and "-PGID"; its end is the launcher's end.
"""

import os
import shutil
import signal
import sys


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups = set()
    for line in sys.stdin:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            pass
    shutil.rmtree(sys.argv[1], ignore_errors=True)


if __name__ == "__main__":
    main()
