"""torch.profiler: events, totals, tables, traces and schedules."""

from __future__ import annotations

import gzip
import json

import pytest


@pytest.fixture
def profiler(torch):
    import teletensor.profiler

    return teletensor.profiler


def run(torch, profiler, function, **options):
    """The profile of a function, whose work was complete before the profile ended."""
    with profiler.profile(**options) as prof:
        function()
    return prof


def count_of(prof) -> dict[str, int]:
    return {row.key: row.count for row in prof.key_averages()}


PROGRAMS = {
    "operators": (lambda t, x: [(x @ x).sum() for _ in range(3)], {"aten::matmul": 3, "aten::sum": 3}),
    "module": (lambda t, x: t.nn.functional.linear(x, x).sum(), {"aten::linear": 1}),
    "decomposition": (lambda t, x: t.linalg.svd(x), {"teletensor::svd_decomposed": 1}),
    "in place": (lambda t, x: x.clone().add_(1).exp_(), {"aten::clone": 1}),
    "fused": (lambda t, x: ((x + 1) * x).tanh().relu(), {"aten::tanh": 1, "aten::relu": 1, "aten::mul": 1, "aten::add": 1}),
    "upload": (lambda t, x: t.tensor([1.0, 2.0]) * 2, {"aten::mul": 1}),
    "read": (lambda t, x: (x * 2).sum().item(), {"aten::mul": 1, "aten::sum": 1}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_operators_are_counted(torch, profiler, name):
    program, expected = PROGRAMS[name]
    x = torch.rand(8, 8)
    prof = run(torch, profiler, lambda: program(torch, x))
    counts = count_of(prof)
    for key, count in expected.items():
        assert counts.get(key) == count, counts


def test_event_has_times_in_engine_and_client(torch, profiler):
    x = torch.rand(200, 200)
    prof = run(torch, profiler, lambda: (x @ x).sum().item())
    event = next(e for e in prof.events() if e.name == "aten::matmul")
    assert event.cpu_time_total > 0 and event.self_cpu_time_total <= event.cpu_time_total
    assert event.client_range.start >= 0
    assert event.time_range.end >= event.time_range.start >= event.client_range.start - 100  # microseconds
    total = prof.events().self_cpu_time_total
    assert total == pytest.approx(sum(e.self_cpu_time_total for e in prof.key_averages() if not e.is_user_annotation))


def test_backward_contains_its_kernels(torch, profiler):
    x = torch.rand(8, 8, requires_grad=True)
    prof = run(torch, profiler, lambda: (x @ x).sum().backward())
    backward = next(e for e in prof.events() if e.name == "teletensor::backward")
    node = next(e for e in prof.events() if e.name == "MmBackward0")
    assert [child.name for child in node.cpu_children].count("aten::mm") == 2 and node.cpu_parent in backward.cpu_children
    assert backward.cpu_time_total >= sum(child.cpu_time_total for child in backward.cpu_children)


def test_ranges_nest_and_contain_operators(torch, profiler):
    x = torch.rand(8, 8)

    @profiler.record_function("decorated")
    def inner():
        return x.exp()

    def program():
        with profiler.record_function("outer"):
            y = x + 1
            with profiler.record_function("inner", "detail"):
                y = y @ x
            inner()
        return y

    prof = run(torch, profiler, program)
    events = {e.name: e for e in prof.events()}
    assert events["inner (detail)"].cpu_parent is events["outer"] is events["decorated"].cpu_parent
    assert events["aten::matmul"].cpu_parent is events["inner (detail)"]
    assert events["aten::add"].cpu_parent is events["outer"] and events["aten::exp"].cpu_parent is events["decorated"]
    assert events["outer"].cpu_time_total >= events["aten::matmul"].cpu_time_total > 0
    assert events["outer"].is_user_annotation and not events["aten::add"].is_user_annotation


def test_range_without_profile_does_nothing(torch, profiler):
    with profiler.record_function("nothing"):
        assert torch.ones(2).sum().item() == 2


@pytest.mark.parametrize(
    ("program", "name", "shapes", "flops"),
    [
        (lambda t, x, w: x @ x, "aten::matmul", [[8, 8], [8, 8]], 0),
        (lambda t, x, w: x @ x, "aten::mm", [[8, 8], [8, 8]], 2 * 8**3),
        (lambda t, x, w: t.nn.functional.linear(x, w), "aten::mm", [[8, 8], [5, 8]], 2 * 8 * 8 * 5),
        (lambda t, x, w: t.addmm(x, x, x), "aten::mm", [[8, 8], [8, 8]], 2 * 8**3),
        (lambda t, x, w: t.bmm(x[None], x[None]), "aten::bmm", [[1, 8, 8], [1, 8, 8]], 2 * 8**3),
        (lambda t, x, w: t.nn.functional.conv2d(x[None, None], w[None, None, :3, :3]), "aten::convolution",
         [[1, 1, 8, 8], [1, 1, 3, 3]], 2 * 36 * 9),
        (lambda t, x, w: t.cat([x, x]), "aten::cat", [[8, 8], [8, 8]], 0),
    ],
)  # fmt: skip
def test_shapes_and_flops(torch, profiler, program, name, shapes, flops):
    x, w = torch.rand(8, 8), torch.rand(5, 8)
    prof = run(torch, profiler, lambda: program(torch, x, w), record_shapes=True, with_flops=True)
    event = next(e for e in prof.events() if e.name == name)
    assert event.input_shapes == shapes and event.flops == flops
    grouped = prof.key_averages(group_by_input_shape=True)
    assert next(row for row in grouped if row.key == name).input_shapes == shapes


def test_memory(torch, profiler):
    def program():
        y = torch.zeros(1024, 1024)
        z = y + 1
        del y
        return z.sum()

    prof = run(torch, profiler, program, profile_memory=True)
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["aten::add"].cpu_memory_usage >= 4 << 20
    assert sum(row.self_cpu_memory_usage for row in rows.values()) < 1 << 20  # all was freed
    assert "Self CPU Mem" in prof.key_averages().table()


def test_stack_names_the_line(torch, profiler, tmp_path):
    x = torch.rand(64, 64)
    prof = run(torch, profiler, lambda: [x @ x for _ in range(50)], with_stack=True)
    event = next(e for e in prof.events() if e.name == "aten::matmul")
    assert "test_profiler.py" in event.stack[0]
    assert "test_profiler.py" in next(r for r in prof.key_averages(group_by_stack_n=1) if r.key == "aten::matmul").stack[0]
    prof.export_stacks(str(tmp_path / "stacks"), "self_cpu_time_total")
    assert any("aten::matmul" in line for line in (tmp_path / "stacks").read_text().splitlines())


def test_table(torch, profiler):
    x = torch.rand(64, 64)
    prof = run(torch, profiler, lambda: [(x @ x).sum() for _ in range(4)])
    text = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=1, header="Title", time_unit="us")
    lines = text.splitlines()
    assert lines[1] == "Title" and lines[3].split()[0] == "Name"
    body = lines[5:-2]
    assert len(body) == 1 and text.rstrip().splitlines()[-1].startswith("Self CPU time total: ")
    with pytest.raises(ValueError, match="sort_by"):
        prof.key_averages().table(sort_by="wall_time")


def checked_trace(path) -> dict:
    """Reads a trace and checks its events: required fields by phase, pairs of begins and ends ("Trace Event Format")."""
    with (gzip.open if str(path).endswith("gz") else open)(path, "rt") as file:
        trace = json.load(file)
    events = trace["traceEvents"]
    required = {"X": ("name", "pid", "tid", "ts", "dur"), "M": ("name", "pid", "args"), "C": ("name", "pid", "ts", "args"),
                "s": ("id", "pid", "tid", "ts"), "f": ("id", "pid", "tid", "ts", "bp"),
                "b": ("name", "cat", "id2", "pid", "ts"), "e": ("name", "cat", "id2", "pid", "ts")}  # fmt: skip
    for event in events:
        assert all(field in event for field in required[event["ph"]]), event
        assert event.get("dur", 0) >= 0
    arrows = [sorted((e["cat"], str(e["id"])) for e in events if e["ph"] == phase) for phase in "sf"]
    assert arrows[0] == arrows[1] and len(set(arrows[0])) == len(arrows[0]) > 0
    ends = [sorted((e["id2"]["local"], e["name"]) for e in events if e["ph"] == phase) for phase in "be"]
    assert ends[0] == ends[1]
    return trace


@pytest.mark.parametrize("suffix", ["json", "json.gz"])
def test_trace_is_valid(torch, profiler, tmp_path, suffix):
    x = torch.rand(8, 8)

    def program():
        with profiler.record_function("range"):
            (x @ x).sum().item()

    prof = run(torch, profiler, program, record_shapes=True, with_stack=True, profile_memory=True)
    prof.add_metadata("who", "test")
    prof.add_metadata_json("list", "[1, 2]")
    path = tmp_path / f"trace.{suffix}"
    prof.export_chrome_trace(str(path))
    trace = checked_trace(path)
    assert trace["who"] == "test" and trace["list"] == [1, 2]
    events = trace["traceEvents"]
    assert any(e["ph"] == "s" and e["name"] == "issue" for e in events)
    assert {"wire", "execute"} <= {e["name"] for e in events if e["ph"] == "b"}
    names = {e["name"] for e in events if e["ph"] == "X"}
    assert {"aten::matmul", "aten::sum", "range"} <= names
    matmul = next(e for e in events if e["name"] == "aten::matmul" and e["cat"] == "cpu_op")
    assert matmul["args"]["Input Dims"] == [[8, 8], [8, 8]]


def test_frames(torch, profiler):
    x = torch.rand(64, 64)

    def program():
        for _ in range(3):
            (x @ x).sum().item()

    prof = run(torch, profiler, program)
    frames = prof.frames()
    assert len(frames) >= 3 and [f.sequence for f in frames] == sorted(f.sequence for f in frames)
    for frame in frames:
        stages = (frame.wire_time, frame.queue_time, frame.prepare_time, frame.execution_time)
        assert min(stages) >= 0, frame
        assert frame.started == pytest.approx(frame.sent + sum(stages[:3]))
        assert frame.acknowledged is None or frame.acknowledged > frame.ended - 100  # microseconds
    assert sum(frame.acknowledged is not None for frame in frames) >= 2
    # Each operator ran in its frame.
    starts = [frame.first_instruction for frame in frames]
    assert starts == sorted(starts)
    matmuls = [e for e in prof.events() if e.name == "aten::matmul"]
    for event in matmuls:
        assert any(f.started - 1 <= event.time_range.start <= f.ended for f in frames), event
    assert "wire" in prof.link_table() and f"{len(frames)} frames" in prof.link_table()


def test_arrival_of_a_frame_that_waited_is_estimated():
    import numpy as np

    from teletensor.profiler._frames import match
    from teletensor.profiler._recording import _FRAME, _SENT_FRAME

    # sequence, awaited, received, started, ended, first_instruction; the engine is idle before the first frame only
    engine = np.array([(1, 0, 1100, 1200, 9000, 0), (2, 9100, 9200, 9300, 9400, 5), (3, 9500, 9900, 9950, 9990, 7)], _FRAME)
    client = np.array([(1, 1000, 1010, 9050), (2, 2000, 2010, 9500), (3, 9600, 9610, 0)], _SENT_FRAME)
    first, second, third = match(engine, client, 0)
    assert (first.wire_time, first.queue_time, first.estimated) == (pytest.approx(0.1), 0.0, False)
    assert (second.wire_time, second.estimated) == (pytest.approx(0.1), True) and second.queue_time == pytest.approx(7.1)
    assert (third.wire_time, third.estimated, third.acknowledged) == (pytest.approx(0.3), False, None)


SCHEDULES = [
    ({"wait": 1, "warmup": 1, "active": 2}, 8, [(2, 3), (6, 7)]),
    ({"wait": 1, "warmup": 1, "active": 2, "repeat": 1}, 8, [(2, 3)]),
    ({"wait": 0, "warmup": 1, "active": 1, "skip_first": 2}, 6, [(3,), (5,)]),
    ({"wait": 2, "warmup": 1, "active": 1, "skip_first_wait": 1}, 6, [(1,), (5,)]),
]


@pytest.mark.parametrize(("options", "steps", "expected"), SCHEDULES)
def test_schedule(torch, profiler, options, steps, expected):
    found = []

    def ready(prof):
        found.append(tuple(int(e.name.split("#")[1]) for e in prof.events() if e.name.startswith("ProfilerStep#")))
        assert count_of(prof)["aten::matmul"] == len(found[-1])

    x = torch.rand(8, 8)
    with profiler.profile(schedule=profiler.schedule(**options), on_trace_ready=ready) as prof:
        for _ in range(steps):
            x @ x
            prof.step()
    assert found == expected


def test_trace_handler(torch, profiler, tmp_path):
    handler = profiler.tensorboard_trace_handler(str(tmp_path), worker_name="me", use_gzip=True)
    run(torch, profiler, lambda: torch.ones(2) + 1, on_trace_ready=handler)
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("me.") and path.name.endswith(".pt.trace.json.gz")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"with_modules": True}, NotImplementedError),
        ({"experimental_config": object()}, NotImplementedError),
        ({"activities": []}, AssertionError),
        ({"activities": ["cpu"]}, TypeError),
    ],
)
def test_unsupported_arguments(profiler, options, error):
    with pytest.raises(error):
        profiler.profile(**options)


def test_one_profile_at_a_time(torch, profiler):
    with profiler.profile(), pytest.raises(RuntimeError, match="one is possible"):
        profiler.profile().start()
    assert torch.ones(2).sum().item() == 2


def test_failed_operator_and_interrupted_frame_do_not_confuse_the_order(torch, profiler):
    x = torch.rand(4, 4)

    def program():
        with pytest.raises(torch.linalg.LinAlgError):
            torch.linalg.cholesky(-torch.eye(4)).sum().item()
        return (x @ x).sum().item()

    counts = count_of(run(torch, profiler, program))
    assert counts["aten::matmul"] == 1


def test_results_are_equal_with_and_without_profile(torch, profiler):
    torch.manual_seed(0)
    x = torch.rand(16, 16, requires_grad=True)

    def program():
        x.grad = None
        ((x * 2).tanh() @ x).relu().sum().backward()
        return x.grad.tolist()

    expected, found = program(), []
    run(torch, profiler, lambda: found.append(program()))
    assert found == [expected]


def test_older_interface(torch):
    from teletensor.autograd import profiler

    x = torch.rand(8, 8)
    with profiler.profile(record_shapes=True) as prof:
        x @ x
    assert next(e for e in prof.function_events if e.name == "aten::matmul").input_shapes == [[8, 8], [8, 8]]
    assert "aten::matmul" in prof.key_averages().table() and prof.self_cpu_time_total > 0
    with profiler.profile(enabled=False):
        x @ x
    with pytest.raises(NotImplementedError):
        profiler.profile(use_device="xpu")
