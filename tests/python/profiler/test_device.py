"""torch.profiler with GPU events: links to operators, totals, traces, and engines that cannot record them.

The GPUs are simulated, with a simulated CUPTI (tests/cuda/simulated/cupti.cc). On a machine with a GPU
(`TELETENSOR_TEST_GPU`) the tests use that.
"""

from __future__ import annotations

import json

import pytest

from tests.conftest import IN_PROCESS, SIMULATED
from tests.python.profiler.test_profiler import checked_trace, run
from tests.python.session.test_session import run_script

pytestmark = pytest.mark.skipif(IN_PROCESS, reason="the engine in this process has no GPU")


@pytest.fixture
def profiler(torch):
    import teletensor.profiler

    if not torch.cuda.is_available():
        pytest.skip("the engine has no GPU")
    return teletensor.profiler


def on_gpu(profiler) -> list:
    return [profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA]


def device_events(prof) -> list:
    return [event for event in prof.events() if event.device_type.name == "CUDA"]


def backward(t, x):
    leaf = x.clone().requires_grad_()
    (leaf @ leaf).relu().sum().backward()


PROGRAMS = {
    "operators": (lambda t, x: [(x @ x).sum() for _ in range(3)], {"aten::matmul": 3, "aten::sum": 3}),
    "fused": (lambda t, x: ((x + 1) * x).tanh().relu(), {"aten::tanh": 1, "aten::relu": 1, "aten::mul": 1, "aten::add": 1}),
    "decomposition": (lambda t, x: t.linalg.cholesky(x @ x.mT + 100 * t.eye(16, device="cuda")), {"aten::matmul": 1}),
    "backward": (backward, {"teletensor::backward": 1, "aten::matmul": 1, "aten::mm": 3}),
    "sort": (lambda t, x: x.sort(), {"aten::sort": 1}),
    "zeros": (lambda t, x: t.zeros(16, device="cuda").cumsum(0), {"aten::cumsum": 1}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gpu_time_is_linked_to_operators(torch, profiler, name):
    program, expected = PROGRAMS[name]
    x = torch.rand(16, 16, device="cuda")
    program(torch, x)
    prof = run(torch, profiler, lambda: program(torch, x), activities=on_gpu(profiler))
    rows = {(row.key, row.device_type.name): row for row in prof.key_averages()}
    for key, count in expected.items():
        row = rows[key, "CPU"]
        assert row.count == count and row.device_time_total > 0, (key, list(rows))
        assert 0 <= row.self_device_time_total <= row.device_time_total * (1 + 1e-9)
    kernels = device_events(prof)
    assert kernels and all(event.launched_by is not None for event in kernels)
    assert all(event.activity.call is not None and event.cpu_time_total == 0 for event in kernels)
    launched = sum(row.self_device_time_total for (_, kind), row in rows.items() if kind == "CPU")
    assert launched == pytest.approx(sum(event.time_range.elapsed_us() for event in kernels))
    assert launched == pytest.approx(prof.events().total_average().device_time_total)


def test_kernels_run_after_their_launch_and_within_the_profile(torch, profiler):
    x = torch.rand(64, 64, device="cuda")
    prof = run(torch, profiler, lambda: (x @ x).sum().item(), activities=on_gpu(profiler))
    for event in device_events(prof):
        assert event.time_range.end >= event.time_range.start > -1000  # microseconds
        if event.activity.call is not None:
            assert event.time_range.start >= event.activity.call.start - 50
    matmul = next(event for event in prof.events() if event.name == "aten::mm")
    kernel = next(event for event in device_events(prof) if event.launched_by is matmul)
    assert matmul.kernels[0].name == kernel.name and matmul.kernels[0].device == kernel.device_index == 0
    assert matmul.device_time_total == matmul.cuda_time_total == sum(k.duration for k in matmul.kernels)


def test_repeated_steps_are_recorded_alike(torch, profiler):
    """Launches that would be replayed as a graph are issued one by one while they are recorded."""
    x = torch.rand(8, 8, device="cuda")

    def step():
        y = x
        for _ in range(6):
            y = (y @ x).tanh()
        return y.sum().item()

    expected = [step() for _ in range(4)]
    counts = []
    for _ in range(2):
        prof = run(torch, profiler, step, activities=on_gpu(profiler))
        counts.append(sum(event.activity.category == "kernel" for event in device_events(prof)))
    assert counts[0] == counts[1] >= 13
    assert [step() for _ in range(4)] == expected


def test_kernels_of_a_captured_graph_belong_to_its_replay(torch, profiler):
    x = torch.ones(8, 8, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = (x @ x).sum()
    prof = run(torch, profiler, graph.replay, activities=on_gpu(profiler))
    launchers = [event.launched_by for event in device_events(prof) if event.activity.category == "kernel"]
    assert len(launchers) >= 2 and len(set(map(id, launchers))) == 1 and "graph" in launchers[0].name
    assert y.item() == 512


def test_trace(torch, profiler, tmp_path):
    x = torch.rand(32, 32, device="cuda")

    def program():
        with profiler.record_function("range"):
            return (x @ x).sum().cpu().tolist()

    prof = run(torch, profiler, program, activities=on_gpu(profiler))
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    events = checked_trace(tmp_path / "trace.json")["traceEvents"]
    on_device = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    assert {"kernel", "gpu_memcpy"} <= {e["cat"] for e in on_device}
    streams = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    labels = {e["pid"]: e["args"]["labels"] for e in events if e["name"] == "process_labels"}
    for event in on_device:
        args = event["args"]
        assert event["pid"] == args["device"] and event["tid"] == args["stream"] and args["correlation"] > 0
        assert streams[event["pid"], event["tid"]] == f"stream {args['stream']}" and labels[event["pid"]] == "GPU 0"
        fields = {"grid", "block", "registers per thread", "shared memory"} if event["cat"] == "kernel" else {"bytes"}
        assert fields <= set(args)
    kernel = next(e for e in on_device if e["cat"] == "kernel" and e["args"].get("operator") == "aten::mm")
    assert min(kernel["args"]["grid"]) >= 1 and min(kernel["args"]["block"]) >= 1 and kernel["args"]["registers per thread"] > 0
    assert "gpu" not in kernel["name"] and not kernel["name"].startswith("_Z")
    # An arrow goes from the launching call, within the operator, to each kernel.
    begins, ends = ({e["id"]: e for e in events if e["ph"] == phase and e["name"] == "ac2g"} for phase in "sf")
    assert begins.keys() == ends.keys() and len(ends) == len(on_device)
    calls = [e for e in events if e.get("cat") == "cuda_runtime"]
    operator = next(e for e in events if e["name"] == "aten::mm" and e["cat"] == "cpu_op")
    end = next(e for e in ends.values() if (e["pid"], e["tid"], e["ts"]) == (kernel["pid"], kernel["tid"], kernel["ts"]))
    begin = begins[end["id"]]
    assert (begin["pid"], begin["tid"]) == (operator["pid"], operator["tid"])
    assert operator["ts"] - 50 <= begin["ts"] <= operator["ts"] + operator["dur"] + 50  # microseconds
    assert any(call["ts"] == begin["ts"] and call["tid"] == begin["tid"] for call in calls)


def test_table_and_stacks(torch, profiler, tmp_path):
    x = torch.rand(64, 64, device="cuda")
    prof = run(torch, profiler, lambda: [(x @ x).sum() for _ in range(4)], activities=on_gpu(profiler), with_stack=True)
    for column in ("device_time_total", "cuda_time_total", "self_cuda_time_total", "cuda_time"):
        times = [getattr(row, column) for row in sorted(prof.key_averages(), key=lambda r: getattr(r, column), reverse=True)]
        text = prof.key_averages().table(sort_by=column, time_unit="us")
        lines = text.splitlines()
        assert all(f"  {name}" in lines[1] for name in ("Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg"))
        assert text.rstrip().splitlines()[-1].startswith("Self CUDA time total: ")
        assert f"{times[0]:.3f}us" in lines[3]
    prof.export_stacks(str(tmp_path / "stacks"), "self_cuda_time_total")
    assert (tmp_path / "stacks").exists()


def test_activities(torch, profiler):
    cpu, cuda = on_gpu(profiler)
    assert profiler.supported_activities() == {cpu, cuda}
    x = torch.rand(8, 8, device="cuda")
    found = {}
    for name, activities in {"cpu": [cpu], "cuda": [cuda], "both": [cpu, cuda], "default": None}.items():
        prof = run(torch, profiler, lambda: (x @ x).sum().item(), activities=activities)
        found[name] = {event.device_type.name for event in prof.events()}
    assert found == {"cpu": {"CPU"}, "cuda": {"CUDA"}, "both": {"CPU", "CUDA"}, "default": {"CPU", "CUDA"}}
    from teletensor.autograd import profiler as older

    with older.profile(use_device="cuda") as prof:
        x @ x
    assert any(event.self_device_time_total > 0 for event in prof.function_events)
    with pytest.raises(NotImplementedError, match="XPU"):
        profiler.profile(activities=[profiler.ProfilerActivity.XPU])


def test_schedule_keeps_events_of_all_cycles(torch, profiler):
    x = torch.rand(8, 8, device="cuda")
    counts = []

    def ready(prof):
        counts.append(sum(event.launched_by is not None and event.launched_by.name == "aten::mm" for event in prof.events()))

    schedule = profiler.schedule(wait=1, warmup=1, active=1)
    with profiler.profile(activities=on_gpu(profiler), schedule=schedule, on_trace_ready=ready, acc_events=True) as prof:
        for _ in range(6):
            x @ x
            prof.step()
    assert len(counts) == 2 and counts[1] == 2 * counts[0] > 0


SCRIPT = """
import json, warnings
import teletensor as torch
from teletensor.profiler import ProfilerActivity, profile
x = torch.rand(8, 8, device="cuda")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        (x @ x).sum().item()
print(json.dumps({"warnings": [str(w.message) for w in caught],
                  "kinds": sorted({e.device_type.name for e in prof.events()}),
                  "matmul": sum(r.device_time_total for r in prof.key_averages() if r.key == "aten::matmul"),
                  "operators": [r.key for r in prof.key_averages()], "table": prof.key_averages().table()}))
"""


@pytest.mark.skipif(not SIMULATED, reason="configures the simulated CUPTI")
@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"TELETENSOR_SIMULATED_WITHOUT": "cupti"}, "GPU events need CUPTI, which cannot be opened: simulated devices have none"),
        ({"TELETENSOR_SIMULATED_CUPTI": "refused"}, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35, from cuptiActivityEnable); the "
         "driver restricts profiling to administrators"),
        ({"TELETENSOR_SIMULATED_CUPTI": "old"}, "GPU events need CUPTI of CUDA 12 or 13, found API version 14"),
    ],
    ids=["missing", "refused", "old"],
)  # fmt: skip
def test_profile_without_cupti(own_daemon, environment, message):
    result = run_script(SCRIPT, own_daemon(**environment))
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert len(found["warnings"]) == 1 and message in found["warnings"][0], found["warnings"]
    # Times of CUDA events are used instead.
    assert "GPU times are those of CUDA events" in found["warnings"][0] and found["kinds"] == ["CPU", "CUDA"]
    assert found["matmul"] > 0 and "Self CUDA" in found["table"] and "aten::mm (GPU)" in found["operators"]


SHARED = """
import subprocess, sys
import teletensor as torch
from teletensor.profiler import profile
OTHER = "import teletensor as t; x = t.ones(4, 4, device='cuda'); print([x.cumsum(0).sum().item() for _ in range(9)])"
x = torch.rand(8, 8, device="cuda")
for command in ([sys.executable, "-c", "pass"], [sys.executable, "-c", OTHER]):
    with profile() as prof:
        (x @ x).sum().item()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (x @ x).sum().item()
    print(sum(e.activity is not None and e.activity.category == "kernel" for e in prof.events()))
"""


def test_work_of_other_sessions_is_not_recorded(own_daemon):
    result = run_script(SHARED, own_daemon())
    assert result.returncode == 0, result.stderr
    alone, beside = map(int, result.stdout.split())
    assert alone == beside >= 4
