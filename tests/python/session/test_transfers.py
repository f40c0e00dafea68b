"""Transfers from Python: the compression of bytes on the connection, and what the counters report."""

from __future__ import annotations

import json
import time

import pytest

from tests.conftest import IN_PROCESS
from tests.python.session.test_session import run_script

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

ROUND_TRIP = """
import json, numpy, teletensor as torch
torch.connect({arguments})
x = numpy.random.default_rng(0).integers(0, 1000, 1 << 18)
assert (torch.from_numpy(x).numpy() == x).all()
counters = torch.connection().counters()
assert "rate of the link" in torch.sync_report()
print(json.dumps([x.nbytes] + [counters[f"{{d}}{{c}}_bytes"] for d in ("upload", "download") for c in ("", "_compressed")]))
"""


def transferred(daemon, arguments: str = "", **env) -> list[int]:
    result = run_script(ROUND_TRIP.format(arguments=arguments), daemon, TELETENSOR_SHARED_MEMORY="0", **env)
    assert result.returncode == 0, result.stderr
    size, *counts = json.loads(result.stdout)
    assert counts[0] == counts[2] == size
    return [counts[1] / size, counts[3] / size]


def test_compression_is_selected_by_argument_and_variable(daemon):
    assert transferred(daemon, "compression=None") == [1, 1]
    assert max(transferred(daemon, "compression='zstd'")) < 0.3
    assert max(transferred(daemon, TELETENSOR_COMPRESSION="zstd")) < 0.3
    assert transferred(daemon, "compression=None", TELETENSOR_COMPRESSION="zstd") == [1, 1]


def test_content_addressed_uploads_send_bytes_once(daemon):
    script = """
import numpy, teletensor as torch
torch.connect(content_addressed=True)
x = numpy.random.default_rng(0).random(1 << 19)
first, second = torch.from_numpy(x), torch.from_numpy(x)
assert (second.numpy() == x).all()
third = torch.from_numpy(x)
assert (third.numpy() == x).all() and (first.numpy() == x).all()
counters = torch.connection().counters()
assert counters["upload_reused_bytes"] >= x.nbytes, counters
first += 1
assert (third.numpy() == x).all()
"""
    for environment in ({}, {"TELETENSOR_COMPRESSION": "zstd"}):
        result = run_script(script, daemon, TELETENSOR_SHARED_MEMORY="0", **environment)
        assert result.returncode == 0, result.stderr


def test_unknown_compression_raises(daemon):
    result = run_script("import teletensor as torch; torch.connect(compression='gzip')", daemon)
    assert "ValueError: [connect] expected compression to be auto, zstd or none, got gzip" in result.stderr
    result = run_script("import teletensor as torch; torch.connect()", daemon, TELETENSOR_COMPRESSION="lz4")
    assert "ValueError: [connect] expected TELETENSOR_COMPRESSION to be auto, zstd or none, got lz4" in result.stderr


def test_an_engine_that_sent_much_ends_at_once(own_daemon):
    engine = own_daemon()
    done = run_script("import teletensor as torch; torch.ones(300_000).numpy()", engine, TELETENSOR_SHARED_MEMORY="0")
    assert done.returncode == 0, done.stderr
    begin = time.monotonic()
    assert engine.stop() == 0
    assert time.monotonic() - begin < 8  # a thread of gRPC polls for 10 s
