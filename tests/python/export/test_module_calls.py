"""preserve_module_call_signature: signatures in programs, in files, and modules of unflatten() that can be replaced."""

from __future__ import annotations

import dataclasses
import io

import pytest


def example(torch):
    class Part(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 3)

        def forward(self, x, options, *, k=1):
            return {"y": self.layer(x) * options["scale"] * k, "z": [x + 1, 3]}

    class Whole(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.part, self.out = Part(), torch.nn.Linear(3, 2)

        def forward(self, x):
            a = self.part(x, {"scale": x.sum()}, k=2)
            b = self.part(a["z"][0], {"scale": x.sum()}, k=2)
            return self.out(a["y"] + b["y"])

    return Whole()


def replacement(torch):
    class Other(torch.nn.Module):
        def forward(self, x, options, *, k=1):
            return {"y": x * k, "z": [x, 3]}

    return Other()


def exported(torch, module, x):
    return torch.export.export(module, (x,), preserve_module_call_signature=("part",))


def test_signatures_are_pytorchs(torch):
    program = exported(torch, example(torch), torch.randn(2, 3))
    entries = {e.fqn: e.signature for e in program.module_call_graph}
    assert list(entries) == ["", "part", "part.layer", "out", "part@1"]
    signature = entries["part"]
    assert [getattr(a, "name", "") or a.value for a in signature.inputs] == ["x", "sum_1", 2]
    assert [getattr(a, "name", "") or a.value for a in signature.outputs] == ["mul_1", "add", 3]
    assert [getattr(a, "name", "") or a.value for a in entries["part@1"].inputs] == ["add", "sum_2", 2]
    assert entries["out"] is None


@pytest.mark.parametrize("through_file", [False, True])
def test_modules_can_be_replaced(torch, through_file):
    module, x = example(torch), torch.randn(2, 3)
    program = exported(torch, module, x)
    if through_file:
        file = io.BytesIO()
        torch.export.save(program, file)
        file.seek(0)
        program = torch.export.load(file)
    made = torch.export.unflatten(program)
    assert not any("@" in name for name, _ in made.named_modules())  # both calls are one module
    torch.testing.assert_close(made(x), module(x))
    made.part = replacement(torch)
    module.part = replacement(torch)
    torch.testing.assert_close(made(x), module(x))


def test_what_a_preserved_module_refuses(torch):
    module, x = example(torch), torch.randn(2, 3)
    made = torch.export.unflatten(exported(torch, module, x))
    scale = torch.ones(())
    torch.testing.assert_close(made.part(x, {"scale": scale}, k=2)["y"], module.part(x, {"scale": scale}, k=2)["y"])
    with pytest.raises(ValueError, match="structure"):
        made.part(x, scale)
    with pytest.raises(ValueError, match="exported argument 2"):
        made.part(x, {"scale": scale}, k=3)
    with pytest.raises(RuntimeError, match="names of submodules"):
        torch.export.export(module, (x,), preserve_module_call_signature=("absent",))


def test_modules_that_share_values_beyond_their_signature(torch):
    class Part(torch.nn.Module):
        def forward(self, x):
            self.hidden[0] = x * 2
            return x + 1

    class Whole(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.part = Part()

        def forward(self, x):
            self.part.hidden = {}
            return self.part(x) * self.part.hidden[0]

    program = torch.export.export(Whole(), (torch.ones(2),), preserve_module_call_signature=("part",))
    with pytest.raises(NotImplementedError, match="beyond its signature"):
        torch.export.unflatten(program)


def test_strict_requires_one_graph(torch):
    class Prints(torch.nn.Module):
        def forward(self, x):
            print("text")
            return x + 1

    x = torch.ones(2)
    assert torch.export.export(Prints(), (x,)).module()(x).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="print.., which"):
        torch.export.export(Prints(), (x,), strict=True)
    program = torch.export.export(torch.nn.Linear(2, 3), (x,), strict=True)
    assert len(program.graph_signature.parameters) == 2


def test_submodules_that_others_call_and_write(torch):
    class Inner(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.ones(1))

        def forward(self, x):
            return x + 1

    class Middle(Inner):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x + self.inner.count) * self.count

    class Outer(Middle):
        def __init__(self):
            super().__init__()
            self.middle = Middle()

        def forward(self, x):
            x = self.middle(x + self.middle.inner.count)
            self.middle.inner.count.add_(1)
            x = self.middle.inner(x + self.middle.count) * self.inner(x)
            return self.middle(x) + self.middle.inner(x * 2)

    def result(module):
        return [module(torch.ones(1)), module(torch.ones(1)), sorted((k, v.item()) for k, v in module.named_buffers())]

    program = torch.export.export(Outer(), (torch.ones(1),))
    assert str(result(torch.export.unflatten(program))) == str(result(Outer()))


def test_hooks_of_state_dict_do_not_change_a_program(torch):
    module = torch.nn.Sequential(torch.nn.Linear(2, 2))
    module._register_state_dict_hook(lambda module, state, prefix, meta: state.clear())
    module.register_buffer("hidden", torch.ones(2), persistent=False)
    program = torch.export.export(module, (torch.ones(2),))
    assert list(program.state_dict) == ["0.weight", "0.bias"]
    assert torch.equal(program.module()(torch.ones(2)), module(torch.ones(2)))


def test_dynamic_shapes_in_a_dataclass(torch):
    @dataclasses.dataclass
    class Pair:
        x: object
        y: list

    class Sums(torch.nn.Module):
        def forward(self, pair):
            return pair.x + pair.y[0]

    torch.export.register_dataclass(Pair, serialized_type_name="test_dynamic_shapes_in_a_dataclass.Pair")
    pair, sizes, dim = Pair(torch.ones(4), [torch.ones(4)]), torch.export.ShapesCollection(), torch.export.Dim("dim", max=10)
    sizes[pair.x], sizes[pair.y[0]] = (dim,), (dim,)
    program = torch.export.export(Sums(), (pair,), dynamic_shapes=sizes.dynamic_shapes(Sums(), (pair,)))
    assert program.module()(Pair(torch.ones(7), [torch.ones(7)])).shape == (7,)
