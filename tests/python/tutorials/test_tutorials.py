"""Every program and command of the tutorials does what its page says."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import IN_PROCESS
from tests.python.tutorials import page as pages

pytestmark = pytest.mark.slow

FOLDER = pages.ROOT / "docs/tutorials"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "index.md")


@pytest.mark.skipif(IN_PROCESS, reason="requires engines in other processes")
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_page(page):
    command = [sys.executable, "-m", "tests.python.tutorials.page", str(page)]
    done = subprocess.run(command, cwd=pages.ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "text, message",
    [
        ("```python\nprint(1 + 1)\n```\n```output\n3\n```\n", "page.md:2: expected the output\n3\n\nreceived\n2"),
        ("```python\nprint(1)\n```\n", "page.md:2: expected the output\n\nreceived\n1"),
        ("```python\n1 / 0\n```\n", "ZeroDivisionError: division by zero"),
        ("```python\n1 / 0\n```\n```text\n5\n```\n", "page.md:2: raised ZeroDivisionError: division by zero"),
        ("```python\nx = 1\n```\n```text\n5\n```\n", "page.md:2: printed nothing"),
        ("```console\n$ echo a\nb\n```\n", "page.md:2: expected the output\nb\n\nreceived\na"),
        ("```console\n$ false\n```\n", "page.md:2: ended with 1"),
        ("```console\n$ echo a && exit 3 &\nb\n```\n", "page.md:2: expected the output\nb"),
        ("```yaml\na: 1\n```\n", "page.md:2: expected a block of python, console, output or text, or a title; got yaml"),
    ],
)
def test_other_outputs_are_found(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page.md").write_text(text)
    with pytest.raises(pages.Mismatch) as error:
        pages.run(tmp_path / "page.md")
    assert message in str(error.value)


def test_blocks_share_names_and_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page.md").write_text(
        '```text title="a.txt"\nfrom the file\n```\n'
        "```python\nx = 2\n```\n```python\nprint(x, 'and', open('a.txt').read())\n```\n```output\n2 and ...\n```\n"
        "```python\nprint(x)\n```\n```text\nanything\n```\n"
        "```console\n$ cat \\\n  a.txt\nfrom ...\n$ sleep 100 &\n$ kill -0 %1\n```\n"
    )
    pages.run(tmp_path / "page.md")


def test_wildcards():
    assert pages.matches("a ... d\n", "a b\nc  d") and not pages.matches("a ... d", "a b c")
    assert pages.matches("a", "ab", whole=False) and not pages.matches("a", "ab")


def test_ports_are_replaced_alike():
    text = pages.free_ports("--listen 127.0.0.1:7070 and :7071, again :7070, not 707 or 17070")
    first, second = text.split(":")[1].split(" ")[0], text.split(":")[2].split(",")[0]
    assert "7070" not in (first, second) and first != second
    assert text == f"--listen 127.0.0.1:{first} and :{second}, again :{first}, not 707 or 17070"
