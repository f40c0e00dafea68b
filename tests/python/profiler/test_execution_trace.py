"""ExecutionTraceObserver writes the operators of a thread in PyTorch's format."""

import json

import pytest


def recorded(torch, path, call):
    observer = torch.profiler.ExecutionTraceObserver().register_callback(str(path))
    observer.start()
    assert observer.is_running() and observer.is_registered
    call()
    observer.stop()
    observer.unregister_callback()
    assert not observer.is_running() and not observer.is_registered
    return json.loads(path.read_text())


def attribute(node, name):
    return next(a["value"] for a in node["attrs"] if a["name"] == name)


def test_nodes(torch, tmp_path):
    def step():
        x = torch.ones(2, 3)
        y = torch.add(x, 1.5, alpha=2)
        torch.cat([x, y.t().t()])
        y.add_(1)

    trace = recorded(torch, tmp_path / "trace.json", step)
    assert trace["schema"] == "1.1.1-chakra.0.0.4" and trace["finish_ts"] >= trace["start_ts"]
    thread, *nodes = trace["nodes"]
    assert thread["name"] == "[pytorch|profiler|execution_trace|thread]" and {n["ctrl_deps"] for n in nodes} == {thread["id"]}
    assert [n["name"] for n in nodes] == ["aten::ones", "aten::add", "aten::t", "aten::t", "aten::cat", "aten::add_"]
    ones, add, first, _, cat, added = nodes
    assert add["inputs"]["values"][0] == ones["outputs"]["values"][0] and add["inputs"]["values"][1:] == [1.5, 2]
    assert add["inputs"]["types"] == ["Tensor(float)", "Double", "Int"] and add["outputs"]["shapes"] == [[2, 3]]
    assert first["outputs"]["strides"] == [[1, 3]] and first["outputs"]["values"][0][1] == add["outputs"]["values"][0][1]  # one storage
    assert cat["inputs"]["types"][0] == "GenericList[Tensor(float),Tensor(float)]" and cat["outputs"]["shapes"] == [[4, 3]]
    assert added["outputs"]["values"][0] == add["outputs"]["values"][0]
    assert attribute(add, "op_schema").startswith("aten::add") and attribute(cat, "rf_id") == 5
    ids = [n["id"] for n in trace["nodes"]]
    assert len(set(ids)) == len(ids) and add["outputs"]["values"][0][2:] == [0, 6, 4, str(torch.ones(1).device)]


def test_backward_is_not_recorded_but_works(torch, tmp_path):
    weight = torch.ones(3, requires_grad=True)
    trace = recorded(torch, tmp_path / "trace.json", lambda: (weight * 2).sum().backward())
    assert [n["name"] for n in trace["nodes"][1:3]] == ["aten::mul", "aten::sum"] and weight.grad.tolist() == [2, 2, 2]


def test_in_a_profile(torch, tmp_path):
    observer = torch.profiler.ExecutionTraceObserver().register_callback(tmp_path / "trace.json")
    with torch.profiler.profile(execution_trace_observer=observer) as profile:
        torch.ones(2).exp()
    torch.ones(2).log()
    names = [n["name"] for n in json.loads((tmp_path / "trace.json").read_text())["nodes"]]
    assert names[1:] == ["aten::ones", "aten::exp"] and any("exp" in e.name for e in profile.events())


def test_without_a_file_nothing_is_recorded(torch, monkeypatch):
    observer = torch.profiler.ExecutionTraceObserver()
    observer.start()
    assert not observer.is_running()
    observer.stop()
    build = torch.profiler.ExecutionTraceObserver.build_execution_trace_obs_from_env
    assert build() is None
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1")
    assert build().get_output_file_path().endswith(".et.json")
    with pytest.raises(TypeError):
        observer.register_callback(3)


def test_settings_of_activities(torch):
    profiler = torch.profiler
    plain = {profiler.ProfilerActivity.CPU: profiler.ProfilerActivityConfig()}
    with profiler.profile(activities=plain) as profile:
        torch.ones(2).exp()
    assert any("exp" in e.name for e in profile.events())
    metrics = profiler.PerformanceMetricsConfig(["sm__cycles"], sampling_interval_ms=2.0)
    assert metrics.lookback_window_ms is None and profiler.CuspyConfig() == profiler.CuspyConfig(enable_event_node_ids=False)
    for config in (profiler.ProfilerActivityConfig(["op"]), profiler.ProfilerActivityConfig(profiler_configs=[metrics])):
        with pytest.raises(NotImplementedError, match="counters of GPUs"):
            profiler.profile(activities={profiler.ProfilerActivity.CPU: config})
    with pytest.raises(TypeError, match="ProfilerActivityConfig"):
        profiler.profile(activities={profiler.ProfilerActivity.CPU: 3})
