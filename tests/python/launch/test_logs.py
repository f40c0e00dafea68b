"""Lines of ranks on the launcher's streams, and files."""

import os
import pty
import random
import re
import subprocess
import time
from pathlib import Path

import pytest

from teletensor.launch.logs import LineSplitter

pytestmark = pytest.mark.slow

SAY = "print('out', rank); print('err', rank, file=sys.stderr)"


def test_prefix_and_separate_streams(launch):
    code, out, err = launch("-n", "2", "script.py", script=SAY, environment={"OMP_NUM_THREADS": "1"}).finish()
    assert code == 0
    assert sorted(out.splitlines()) == ["[0] out 0", "[1] out 1"]
    assert sorted(err.splitlines()) == ["[0] err 0", "[1] err 1"]


def test_last_line_without_newline(launch):
    assert launch("script.py", script="sys.stdout.write('a\\nb')").finish()[1] == "[0] a\n[0] b\n"


def test_lines_do_not_interleave(launch):
    """Ranks write long lines in small pieces to both streams, which are one pipe."""
    script = """
line = str(rank) * 5000 + "\\n"
for _ in range(40):
    for stream in (1, 2):
        for start in range(0, len(line), 700):
            os.write(stream, line[start:start + 700].encode())
"""
    run = launch("-n", "4", "script.py", script=script, environment={"OMP_NUM_THREADS": "1"}, stderr=subprocess.STDOUT)
    code, out, _ = run.finish()
    assert code == 0
    lines = out.splitlines()
    assert len(lines) == 4 * 80
    for rank in range(4):
        assert lines.count(f"[{rank}] " + str(rank) * 5000) == 80


def test_nothing_is_lost_when_the_reader_is_slow(launch):
    script = "record_pid()\nfor i in range(20000): print(i, 'x' * 200)"
    run = launch("-n", "2", "script.py", script=script)
    run.pids(2)
    time.sleep(0.5)  # meanwhile all buffers fill
    code, out, _ = run.finish()
    assert code == 0
    lines = out.splitlines()
    for rank in range(2):
        complete = [f"[{rank}] {i} " + "x" * 200 for i in range(20000)]
        same = [line for line in lines if line.startswith(f"[{rank}]")] == complete
        assert same  # without pytest's comparison of long lists


def test_signal_while_the_reader_is_blocked(launch):
    run = launch("-n", "1", "--grace", "0.2", "script.py", script="record_pid()\nwhile True: print('x' * 10000)")
    run.pids(1)
    run.process.stdout.readline()
    run.send()
    assert run.finish()[0] == 143


def test_reader_that_ends(launch):
    """The run continues if nobody reads its output any more."""
    run = launch(
        "script.py", script="print('first'); wait_for('closed')\nfor i in range(10000): print(i)\nrecord('end', 1)"
    )
    run.process.stdout.readline()
    run.process.stdout.close()
    (run.folder / "closed").write_text("")
    run.process.stdout = None
    assert run.finish()[0] == 0 and (run.folder / "end").exists()


def read_terminal(fd: int) -> str:
    data = b""
    while True:
        try:
            piece = os.read(fd, 65536)
        except OSError:  # the other end is closed
            return data.decode()
        data += piece


@pytest.mark.parametrize("no_color", ["", "1"])
def test_colors_on_a_terminal(launch, no_color):
    own, theirs = pty.openpty()
    run = launch("-n", "2", "script.py", script="print('hello')", stdout=theirs, environment={"NO_COLOR": no_color})
    os.close(theirs)
    text = read_terminal(own)
    os.close(own)
    assert run.finish()[0] == 0
    found = {re.sub(r"\r?\n", "", line) for line in text.splitlines()}
    colored = {"\x1b[36m[0]\x1b[0m hello", "\x1b[33m[1]\x1b[0m hello"}
    assert found == ({"[0] hello", "[1] hello"} if no_color else colored)


def files(folder) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*.log")}


def test_log_dir(launch, tmp_path):
    run = launch("-n", "2", "--log-dir", "logs", "--rdzv-id", "r", "script.py", script=SAY)
    code, out, err = run.finish()
    assert code == 0 and "[1] out 1" in out and "[1] err 1" in err
    expected = {f"r/attempt_0/{rank}/std{name}.log": f"{name} {rank}\n" for rank in range(2) for name in ("out", "err")}
    assert files(tmp_path / "logs") == expected


def test_redirects_and_tee(launch, tmp_path):
    arguments = ("-n", "3", "--log-dir", "logs", "--rdzv-id", "r", "--redirects", "0:3,1:1", "--tee", "1:2")
    code, out, err = launch(*arguments, "script.py", script=SAY, environment={"OMP_NUM_THREADS": "1"}).finish()
    assert code == 0
    assert out.splitlines() == ["[2] out 2"]
    assert sorted(err.splitlines()) == ["[1] err 1", "[2] err 2"]
    assert sorted(files(tmp_path / "logs/r/attempt_0")) == [
        "0/stderr.log",
        "0/stdout.log",
        "1/stderr.log",
        "1/stdout.log",
    ]


def test_summary_of_a_redirected_rank(launch):
    code, _, err = launch("--log-dir", "logs", "-r", "3", "script.py", script="sys.exit('reason')").finish()
    assert code == 1 and "  reason" in err and "[0]" not in err


def test_redirects_without_folder(launch, tmp_path):
    (tmp_path / "tmp").mkdir()
    arguments = ("--redirects", "1", "--rdzv-id", "r", "script.py")
    code, out, err = launch(*arguments, script=SAY, environment={"TMPDIR": str(tmp_path / "tmp")}).finish()
    assert code == 0 and out == ""
    folder = Path(re.search("the ranks' output is in (.*)", err)[1])
    assert folder.parent == tmp_path / "tmp" and files(folder) == {"r/attempt_0/0/stdout.log": "out 0\n"}


def test_local_ranks_filter(launch):
    code, out, _ = launch("-n", "3", "--local-ranks-filter", "0,2", "script.py", script=SAY).finish()
    assert code == 0 and sorted(out.splitlines()) == ["[0] out 0", "[2] out 2"]


def test_splitter_is_independent_of_the_pieces():
    text = b"one\ntwo\r\nprogress 1\rprogress 2\rdone\n\nlast"
    expected = [b"one\n", b"two\n", b"progress 1\n", b"progress 2\n", b"done\n", b"\n", b"last\n"]
    for seed in range(50):
        draw, splitter, lines, at = random.Random(seed), LineSplitter(), [], 0
        while at < len(text):
            size = draw.randint(1, 8)
            lines += splitter.feed(text[at : at + size])
            at += size
        assert lines + splitter.end() == expected


def test_splitter_divides_very_long_lines():
    splitter = LineSplitter()
    lines = [line for _ in range(40) for line in splitter.feed(b"x" * 65536)] + splitter.end()
    assert len(lines) > 1 and sum(len(line) - 1 for line in lines) == 40 * 65536


def test_prefix_template_and_filters(launch, tmp_path):
    script = "print('apple', rank); print('pear'); print('a,b', file=sys.stderr)"
    code, out, _ = launch(
        "-n", "2", "--role", "r", "--log-line-prefix-template", "<${role_name} ${rank}/${local_rank}>", "--log-dir", "logs",
        "--redirects", "2", "--duplicate-stdout-filters", "apple,nut", "--duplicate-stderr-filters", "a,,b", "script.py",
        script=script,
    ).finish()  # fmt: skip
    assert code == 0 and sorted(out.splitlines()) == sorted(
        line for r in range(2) for line in (f"<r {r}/{r}>apple {r}", f"<r {r}/{r}>pear")
    )
    (attempt,) = (tmp_path / "logs").glob("*/attempt_0")
    assert sorted((attempt / "filtered_stdout.log").read_text().splitlines()) == ["<r 0/0>apple 0", "<r 1/1>apple 1"]
    assert sorted((attempt / "filtered_stderr.log").read_text().splitlines()) == ["<r 0/0>a,b", "<r 1/1>a,b"]
