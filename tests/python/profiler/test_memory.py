"""torch.cuda.memory: snapshots and history in the format of PyTorch's memory visualiser."""

from __future__ import annotations

import gc
import pickle

import pytest


@pytest.fixture
def memory(torch):
    memory = torch.cuda.memory
    memory._record_memory_history(None, clear_history=True)
    yield memory
    memory._record_memory_history(None, clear_history=True)


def actions(snapshot) -> list[tuple[str, int]]:
    return [(e["action"], e["size"]) for e in snapshot["device_traces"][0] if e["action"] != "snapshot"]


def lines(frames) -> list[str]:
    return [f["filename"].rpartition("/")[2] for f in frames]


def test_history(torch, memory, device):
    memory._record_memory_history()
    x = torch.zeros(1000, 1000)
    small = torch.zeros(3)
    y = x + 1
    del x
    gc.collect()
    snapshot = memory._snapshot(device)
    found = actions(snapshot)
    assert found.count(("alloc", 4_000_000)) == 2 and found.count(("alloc", 12)) >= 1
    assert ("free_requested", 4_000_000) in found and ("free_completed", 4_000_000) in found
    trace = snapshot["device_traces"][0]
    assert trace[-1]["action"] == "snapshot" and all(a["time_us"] <= b["time_us"] for a, b in zip(trace, trace[1:], strict=False))
    allocation = next(e for e in trace if e["size"] == 4_000_000)
    assert lines(allocation["frames"]) == ["test_memory.py"] and allocation["frames"][0]["name"] == "test_history"
    # The live tensors are blocks of segments, with the lines that allocated them, whatever their size.
    live = {b["requested_size"]: b for s in snapshot["segments"] for b in s["blocks"] if b["frames"]}
    assert live[4_000_000]["state"] == "active_allocated" and lines(live[4_000_000]["frames"]) == ["test_memory.py"]
    assert 12 in live and (y.sum() + small.sum()).item() == 1e6


def test_segments_are_consistent(torch, memory, device):
    x = torch.zeros(700_000)
    segments = memory._snapshot(device)["segments"]
    assert segments
    for segment in segments:
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at
            at += block["size"]
        assert at == segment["address"] + segment["total_size"]
        sizes = [sum(b["size"] for b in segment["blocks"] if b["state"] in states) for states in (
            ("active_allocated",), ("active_allocated", "active_awaiting_free"))]  # fmt: skip
        assert sizes == [segment["allocated_size"], segment["active_size"]]
        assert segment["requested_size"] <= segment["allocated_size"]
    blocks = [b for s in segments for b in s["blocks"]]
    assert any(b["requested_size"] == 2_800_000 and lines(b["frames"]) == ["test_memory.py"] for b in blocks)
    assert x.sum().item() == 0


def test_memory_snapshot(torch, memory):
    x = torch.zeros(700_000, device="cuda" if torch.cuda.is_available() else "cpu")
    blocks = [b for s in memory.memory_snapshot() for b in s["blocks"]]
    assert any(b["requested_size"] == 2_800_000 and b["frames"] for b in blocks)
    assert not any(b["frames"] for s in memory.memory_snapshot(include_traces=False) for b in s["blocks"])
    assert memory.memory_snapshot(mempool_id=(0, 999)) == []
    default = memory.memory_snapshot(mempool_id=(0, 0))  # earlier tests may have left graphs with pools of their own
    assert {s["segment_pool_id"] for s in default} == {(0, 0)}
    assert any(b["requested_size"] == 2_800_000 for s in default for b in s["blocks"])
    assert x.sum().item() == 0


OPTIONS = {
    "stopped": ({"enabled": None}, 0),
    "state": ({"enabled": "state"}, 0),
    "all": ({}, 2),
    "skipped": ({"skip_actions": ["alloc"]}, 0),
    "device": ({"device": None}, 2),
    "last": ({"max_entries": 3}, 2),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(torch, memory, device, name):
    options, expected = OPTIONS[name]
    options = {key: value or device if key == "device" else value for key, value in options.items()}
    memory._record_memory_history(**options)
    kept = [torch.zeros(300_001), torch.zeros(300_001)]
    found = actions(memory._snapshot(device))
    assert found.count(("alloc", 1_200_004)) == expected
    assert all(t.sum().item() == 0 for t in kept)


def test_ring_keeps_the_last_events(torch, memory, device):
    memory._record_memory_history(max_entries=4)
    for count in range(1, 9):
        torch.zeros(100_000 + count)
    memory._record_memory_history(None)
    found = actions(memory._snapshot(device))
    sizes = {size for _, size in found}
    assert (100_000 + 8) * 4 in sizes and (100_000 + 1) * 4 not in sizes
    assert actions(memory._snapshot(device)) == found  # stopping keeps the events
    memory._record_memory_history(None, clear_history=True)
    assert actions(memory._snapshot(device)) == []


def test_failed_allocation(torch, memory):
    memory._record_memory_history()
    with pytest.raises(torch.OutOfMemoryError):
        torch.zeros(1 << 45).sum().item()
    (event,) = [e for e in memory._snapshot("cpu")["device_traces"][0] if e["action"] == "oom"]
    assert event["size"] == 1 << 47 and lines(event["frames"]) == ["test_memory.py"]


def test_dump(torch, memory, tmp_path):
    memory._record_memory_history(context=None)
    x = torch.zeros(200_000, device="cuda" if torch.cuda.is_available() else "cpu")
    memory._dump_snapshot(str(tmp_path / "snapshot.pickle"))
    snapshot = pickle.loads((tmp_path / "snapshot.pickle").read_bytes())
    assert snapshot.keys() >= {"segments", "device_traces", "allocator_settings"}
    assert ("alloc", 800_000) in actions(snapshot) and not snapshot["device_traces"][0][0]["frames"]
    assert x.sum().item() == 0


def test_other_sessions_are_hidden(own_daemon, tmp_path):
    import subprocess
    import sys

    from tests.conftest import client_environment

    script = (
        "import sys, teletensor as torch\n"
        "m = torch.cuda.memory\n"
        "x = torch.zeros(int(sys.argv[1])); y = torch.zeros(int(sys.argv[1])); torch.synchronize()\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "print(sorted({b['requested_size'] for s in m._snapshot('cpu')['segments'] for b in s['blocks'] if b['frames']}))\n"
        "print(sorted({b['requested_size'] for s in m._snapshot('cpu')['segments'] for b in s['blocks']}))\n"
    )
    environment = client_environment(TELETENSOR_ADDRESS=own_daemon().address)
    sessions = [
        subprocess.Popen([sys.executable, "-c", script, size], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                         env=environment)
        for size in ("300001", "400001")
    ]  # fmt: skip
    for session in sessions:
        assert session.stdout.readline() == "ready\n"
    outputs = []
    for session in sessions:
        session.stdin.write("\n")
        session.stdin.flush()
        outputs.append([session.stdout.readline(), session.stdout.readline()])
    for session in sessions:
        session.stdin.close()
        assert session.wait(30) == 0
    (own, everything), (other, _) = outputs
    assert own == "[1200004]\n" and other == "[1600004]\n" and "1600004" not in everything


def test_summary_of_the_cpu(torch, memory):
    x = torch.zeros(1 << 20)
    assert memory.memory_stats("cpu")["session_bytes.current"] >= 4 << 20
    text = memory.memory_summary("cpu")
    assert text.startswith("cpu") and "this session's tensors" in text and "small blocks" in text
    assert x.sum().item() == 0


ERRORS = [
    ({"enabled": "yes"}, RuntimeError, "enabled"),
    ({"context": "yes"}, RuntimeError, "context"),
    ({"stacks": "c"}, RuntimeError, "stacks"),
    ({"max_entries": 0}, ValueError, "max_entries"),
    ({"compile_context": True}, NotImplementedError, "compile_context"),
    ({"record_pinned_host_memory": True}, NotImplementedError, "record_pinned_host_memory"),
    ({"record_cuda": False}, NotImplementedError, "record_cuda"),
]


@pytest.mark.parametrize(("options", "error", "message"), ERRORS)
def test_errors(memory, options, error, message):
    with pytest.raises(error, match=message):
        memory._record_memory_history(**options)
    with pytest.raises(NotImplementedError):
        memory._snapshot(augment_with_fx_traces=True)
