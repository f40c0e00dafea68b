"""torch.jit: script, trace, save, load, freeze and what a ScriptModule has."""

from __future__ import annotations

import copy
import gc
import io
import weakref
import zipfile

import pytest


def net(torch):
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 2)).eval()


def saved(torch, module, **options):
    file = io.BytesIO()
    torch.jit.save(module, file, **options)
    file.seek(0)
    return file


def test_a_traced_module_is_the_module(torch):
    module, x = net(torch), torch.randn(5, 3)
    traced = torch.jit.trace(module, torch.randn(2, 3))
    assert isinstance(traced, torch.jit.ScriptModule) and isinstance(traced, torch.jit.TopLevelTracedModule)
    assert traced.original_name == "Sequential"
    assert list(traced.state_dict()) == list(module.state_dict())
    assert [n for n, _ in traced.named_parameters()] == [n for n, _ in module.named_parameters()]
    assert len(traced) == 4 and traced[0] is module[0]
    torch.testing.assert_close(traced(x), module(x))
    traced.double()
    assert module[0].weight.dtype == torch.float64
    traced.float().train()
    assert module.training and module[2].training and traced.training
    assert not traced.eval().training and not module[1].training
    other = copy.deepcopy(traced)
    with torch.no_grad():
        other[0].weight.zero_()
    assert not torch.equal(other(x), traced(x))


@pytest.mark.parametrize("kind", ["trace", "script"])
def test_files(torch, kind, tmp_path):
    module, x = net(torch), torch.randn(5, 3)
    made = torch.jit.trace(module, (torch.randn(2, 3),)) if kind == "trace" else torch.jit.script(module)
    made(x)
    path = tmp_path / "module.pt"
    made.save(path, _extra_files={"notes.txt": "text"})
    texts = {"notes.txt": ""}
    loaded = torch.jit.load(path, _extra_files=texts, map_location="cpu")
    assert texts == {"notes.txt": "text"}
    torch.testing.assert_close(loaded(x), module(x))
    torch.testing.assert_close(loaded(x[:3]), module(x[:3]))
    assert list(loaded.state_dict()) == list(module.state_dict())
    again = torch.jit.load(saved(torch, loaded))
    torch.testing.assert_close(again(x), module(x))
    assert list(torch.export.load(path).graph_signature.parameters) == [n for n, _ in module.named_parameters()]


def test_modes_of_loaded_modules(torch):
    x = torch.randn(5, 3)
    loaded = torch.jit.load(saved(torch, torch.jit.trace(net(torch), x)))
    assert not loaded.training and not loaded.eval().training
    with pytest.raises(NotImplementedError, match="evaluation mode and may compute something else in training mode"):
        loaded.train()
    loaded = torch.jit.load(saved(torch, torch.jit.trace(torch.nn.Linear(3, 2), x)))
    assert loaded.training
    torch.testing.assert_close(loaded.eval()(x), loaded.train()(x))


def test_modes_of_nested_scripted_modules(torch):
    module, x = torch.nn.Sequential(torch.jit.script(torch.nn.Dropout(0.5))).eval(), torch.ones(64)
    assert not module[0].training
    loaded = torch.jit.load(saved(torch, torch.jit.trace(module, x)))
    with pytest.raises(NotImplementedError, match="in training mode"):
        loaded.train()
    assert not module[0].training and module(x).tolist() == x.tolist()
    original = torch.nn.Dropout(0.5).eval()
    scripted = torch.jit.script(original)
    original.train()
    assert scripted.training
    scripted.training = False
    assert not original.training and not scripted.training


def test_programs_of_export_have_one_mode(torch):
    file = io.BytesIO()
    torch.export.save(torch.export.export(torch.nn.Dropout(0.5).eval(), (torch.ones(3),)), file, extra_files={"code/notes": "text"})
    file.seek(0)
    with pytest.raises(NotImplementedError, match="in training mode"):
        torch.jit.load(file).train()


def test_state_is_that_of_the_original_module(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", torch.ones(2))
            self.register_buffer("unsaved", torch.ones(2), persistent=False)
            self.version = 3

        def get_extra_state(self):
            return self.version

        def set_extra_state(self, state):
            self.version = state

        def forward(self, x):
            return x + self.kept + self.unsaved

    scripted = torch.jit.script(Net())
    state, calls = scripted.state_dict(), []
    assert list(state) == ["kept", "_extra_state"] == [k.removeprefix("0.") for k in torch.nn.Sequential(scripted).state_dict()]
    scripted.register_load_state_dict_post_hook(lambda *_: calls.append("loaded"))
    scripted.load_state_dict({"kept": torch.zeros(2), "_extra_state": 4})
    assert scripted.version == 4 and calls == ["loaded"]
    torch.nn.Sequential(scripted).load_state_dict({"0.kept": torch.ones(2), "0._extra_state": 5})
    assert scripted.version == 5 and calls == ["loaded"] * 2 and scripted.kept.tolist() == [1, 1]


def test_hooks_of_scripted_modules(torch):
    scripted, calls = torch.jit.script(torch.nn.Linear(2, 2)), []
    scripted.register_forward_pre_hook(lambda *_: calls.append("before"))
    scripted.register_forward_hook(lambda *_: calls.append("after"))
    scripted.register_full_backward_hook(lambda *_: calls.append("backward"))
    scripted(torch.ones(1, 2, requires_grad=True)).sum().backward()
    assert calls == ["before", "after", "backward"]


def test_arguments_of_calls_are_released(torch):
    class Cache:
        pass

    cache = Cache()
    released = weakref.ref(cache)
    first = torch.jit.script(lambda x, cache: x * 2)
    first(torch.ones(1), cache)
    del cache
    gc.collect()
    assert released() is None
    with pytest.raises(RuntimeError, match="plain values, got Cache"):
        first.save(io.BytesIO())
    traced = torch.jit.trace(torch.jit.script(torch.nn.Linear(2, 2)), torch.ones(1, 2))
    assert torch.jit.load(saved(torch, traced))(torch.ones(3, 2)).shape == (3, 2)


def test_functions(torch):
    @torch.jit.script
    def scaled(x, factor: int):
        return x * factor

    x = torch.randn(3)
    assert isinstance(scaled, torch.jit.ScriptFunction) and scaled.name == "scaled"
    with pytest.raises(RuntimeError, match="call the module once"):
        torch.jit.save(scaled, io.BytesIO())
    torch.testing.assert_close(scaled(x, 3), x * 3)
    assert "aten.mul.Tensor(x, 3)" in scaled.code
    assert "aten::mul" in str(scaled.graph)
    torch.testing.assert_close(torch.jit.load(saved(torch, scaled))(x, 3), x * 3)


def test_code_and_graph(torch):
    traced = torch.jit.trace(net(torch), torch.randn(2, 3))
    assert torch.jit.export_opnames(traced) == ["aten::batch_norm", "aten::linear"]
    assert traced.code.count("aten.linear.default") == 2
    assert str(traced.graph).count("aten::linear") == 2
    with pytest.raises(RuntimeError, match="needs arguments"):
        torch.jit.script(net(torch)).code  # noqa: B018


def test_freeze(torch):
    module, x = net(torch), torch.randn(5, 3)
    module.version = 3
    scripted = torch.jit.script(module)
    frozen = torch.jit.freeze(scripted, preserved_attrs=["version"])
    expected = module(x)
    with torch.no_grad():
        module[0].weight.zero_()
    torch.testing.assert_close(frozen(x), expected)
    assert not list(frozen.parameters()) and not frozen.state_dict() and frozen.version == 3
    with pytest.raises(AttributeError, match="frozen"):
        frozen.other  # noqa: B018
    with pytest.raises(RuntimeError, match="evaluation mode"):
        frozen.train()
    torch.testing.assert_close(torch.jit.load(saved(torch, frozen))(x), expected)
    with pytest.raises(RuntimeError, match="expects a ScriptModule"):
        torch.jit.freeze(module)
    with pytest.raises(RuntimeError, match="in eval mode"):
        torch.jit.freeze(torch.jit.script(torch.nn.Linear(2, 2)))
    assert not torch.jit.optimize_for_inference(torch.jit.script(torch.nn.Linear(3, 2))).training


def test_decorators_mark_functions(torch):
    class Net(torch.nn.Module):
        def forward(self, x):
            return self.logged(x) + 1

        @torch.jit.ignore
        def logged(self, x):
            return x * 2

        @torch.jit.export
        def other(self, x):
            return x - 1

        @torch.jit.unused
        def never(self, x):
            return x

    scripted, x = torch.jit.script(Net()), torch.ones(2)
    assert scripted(x).tolist() == [3, 3] and scripted.other(x).tolist() == [0, 0] and scripted.never(x) is x
    assert Net.logged._torchscript_modifier.startswith("ignore") and Net.other._torchscript_modifier.startswith("export")
    assert torch.jit.load(saved(torch, scripted))(x).tolist() == [3, 3]


def test_what_files_do_not_contain(torch, tmp_path):
    class Branches(torch.nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    traced = torch.jit.trace(Branches(), torch.ones(2))
    assert traced(-torch.ones(2)).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="data-dependent"):
        torch.jit.save(traced, io.BytesIO())
    with pytest.raises(ValueError, match=r"script\(\) or trace\(\)"):
        torch.jit.save(torch.nn.Linear(2, 2), io.BytesIO())
    with pytest.raises(RuntimeError, match=r"expected a \.pt2 archive"):
        torch.jit.load(io.BytesIO(b"text"))
    path = tmp_path / "script.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("script/constants.pkl", b"")
        archive.writestr("script/code/__torch__.py", b"")
    with pytest.raises(NotImplementedError, match="TorchScript archive consists of pickles"):
        torch.jit.load(path)


@pytest.mark.parametrize("content", ["[]", "{", '{"training": 1, "any_mode": true}', "[" * 10000])
def test_settings_of_files_are_checked(torch, content):
    file = io.BytesIO()
    program = torch.export.export(torch.nn.Linear(3, 2), (torch.randn(1, 3),))
    torch.export.save(program, file, extra_files={"teletensor_jit.json": content})
    file.seek(0)
    with pytest.raises(RuntimeError, match="modes of the saved module"):
        torch.jit.load(file)


def test_files_of_export_are_loaded(torch):
    module, x, file = torch.nn.Linear(3, 2), torch.randn(1, 3), io.BytesIO()
    torch.export.save(torch.export.export(module, (x,)), file)
    file.seek(0)
    torch.testing.assert_close(torch.jit.load(file)(x), module(x))


def test_scripted_modules_in_other_captures(torch):
    @torch.jit.script
    def gated(x, scale: float = 2.0):
        return x * torch.sigmoid(x) * scale

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 3)

        def forward(self, x):
            return gated(self.layer(x))

    module, x = Net(), torch.randn(2, 3)
    scripted, expected = torch.jit.script(module), module(x)
    for run in (
        torch.compile(scripted, fullgraph=True), torch.export.export(torch.jit.script(module), (x,)).module(),
        torch.compiler.trace(scripted, x), torch.nn.Sequential(torch.jit.trace(module, x)), torch.fx.symbolic_trace(module),
    ):  # fmt: skip
        torch.testing.assert_close(run(x), expected)
