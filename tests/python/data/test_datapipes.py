"""Data pipes: values recorded from PyTorch (datapipe_cases.py), decorators, hooks and loaders."""

import json
import pickle
import subprocess
import sys
from typing import Any

import pytest

from .datapipe_cases import ITER, RECORDED, outcome

EXPECTED = json.loads(RECORDED.read_text())


@pytest.mark.parametrize("code", ITER.split())
def test_value(torch, code):
    assert outcome(torch, code) == EXPECTED[code]


def numbers(torch, count=4):
    return torch.utils.data.datapipes.iter.IterableWrapper(range(count))


def test_functional_names(torch):
    data = torch.utils.data

    @data.functional_datapipe("squares_of_this_test")
    class Squares(data.IterDataPipe):
        def __init__(self, source, offset=0):
            self.source, self.offset = source, offset

        def __iter__(self):
            for x in self.source:
                yield x * x + self.offset

    pipe = numbers(torch).squares_of_this_test(offset=1)
    assert isinstance(pipe, Squares) and list(pipe) == [1, 2, 5, 10] and "squares_of_this_test" in dir(pipe)
    with pytest.raises(Exception, match="already taken"):
        data.functional_datapipe("squares_of_this_test")(Squares)
    with pytest.raises(TypeError, match="can only decorate"):
        data.functional_datapipe("other_of_this_test")(int)


def test_loader_and_reset(torch):
    pipe = numbers(torch, 6).map(lambda x: x * 2).shuffle(buffer_size=3)
    batches = list(torch.utils.data.DataLoader(pipe, batch_size=4))
    assert [len(b) for b in batches] == [4, 2] and sorted(torch.cat(batches).tolist()) == [0, 2, 4, 6, 8, 10]
    torch.manual_seed(1)
    first = list(pipe)
    torch.manual_seed(1)
    assert list(pipe) == first


def test_iterators_that_are_pipes_themselves(torch):
    class Count(torch.utils.data.IterDataPipe):
        def reset(self):
            self.next = 0

        def __iter__(self):
            return self

        def __next__(self):
            if self.next == 3:
                raise StopIteration
            self.next += 1
            return self.next

    pipe = Count()
    assert list(pipe) == [1, 2, 3] and list(pipe) == [1, 2, 3] and pipe._number_of_samples_yielded == 3


def test_determinism(torch):
    data = torch.utils.data

    @data.non_deterministic
    class Always(data.IterDataPipe):
        pass

    @data.non_deterministic(lambda flag: flag)
    class Sometimes(data.IterDataPipe):
        def __init__(self, flag):
            self.flag = flag

    assert Sometimes(True).flag and Always() is not None
    with data.guaranteed_datapipes_determinism():
        assert Sometimes(False) is not None
        for create in (Always, lambda: Sometimes(True)):
            with pytest.raises(TypeError, match="is non-deterministic"):
                create()
    assert Always() is not None
    with pytest.raises(TypeError, match="Only `IterDataPipe`"):
        data.non_deterministic(int)


def test_validation(torch):
    data = torch.utils.data

    class Ints(data.IterDataPipe[int]):
        def __init__(self, items):
            self.items = items

        @data.runtime_validation
        def __iter__(self):
            yield from self.items

    class Pairs(data.IterDataPipe[tuple[int, str | None]]):
        def __init__(self, items):
            self.items = items

        @data.runtime_validation
        def __iter__(self):
            yield from self.items

    assert list(Ints([1, 2])) == [1, 2] and list(Pairs([(1, None), (2, "a")])) == [(1, None), (2, "a")]
    for pipe in (Ints([1, "a"]), Pairs([(1, 2)]), Pairs([(1, "a", 3)])):
        with pytest.raises(RuntimeError, match="Expected an instance as subtype"):
            list(pipe)
    with data.runtime_validation_disabled():
        assert list(Ints(["a"])) == ["a"]

    @data.argument_validation
    def use(source: data.IterDataPipe[int], other: int = 0) -> Any:
        return list(source) + [other]

    assert use(Ints([1])) == [1, 0] and use(source=Ints([1]), other=3) == [1, 3]
    for wrong in ([1], Pairs([])):
        with pytest.raises(TypeError, match="Expected"):
            use(wrong)
    with pytest.raises(TypeError, match="Can not decorate"):
        data.runtime_validation(use)


def test_hooks_and_pickles(torch):
    pipe = numbers(torch).batch(2)
    assert list(pickle.loads(pickle.dumps(pipe))) == [[0, 1], [2, 3]]  # noqa: S301 - our own
    cls = torch.utils.data.IterDataPipe
    cls.set_reduce_ex_hook(lambda p: (str, (type(p).__name__,)))
    try:
        assert pickle.loads(pickle.dumps(pipe)) == "Batcher"  # noqa: S301 - our own
        with pytest.raises(RuntimeError, match="override"):
            cls.set_reduce_ex_hook(lambda p: p)
    finally:
        cls.set_reduce_ex_hook(None)


def test_files(torch, tmp_path):
    for name in ("b.txt", "a.txt", "c.bin"):
        (tmp_path / name).write_text(name * 2)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "d.txt").write_text("d")
    lister = torch.utils.data.datapipes.iter.FileLister
    files = lister(str(tmp_path), "*.txt")
    assert [p[-5:] for p in files] == ["a.txt", "b.txt"] and len(list(lister(str(tmp_path), recursive=True))) == 4
    parts = [content for _, content in files.open_files("rb").read_from_stream(3)]
    assert parts == [b"a.t", b"xta", b".tx", b"t", b"b.t", b"xtb", b".tx", b"t"]
    assert [content for _, content in files.open_files().read_from_stream()] == ["a.txta.txt", "b.txtb.txt"]


def loaded(torch, pipe, **options):
    return [x for batch in torch.utils.data.DataLoader(pipe, batch_size=2, **options) for x in batch.tolist()]


def test_loaders_switch_shufflers_on_and_off(torch):
    assert loaded(torch, numbers(torch, 9).shuffle().map(lambda x: x), shuffle=False) == list(range(9))
    pipe = numbers(torch, 40).shuffle().set_shuffle(False)
    assert loaded(torch, pipe.map(lambda x: x), shuffle=True) != list(range(40)) == sorted(loaded(torch, pipe))
    with pytest.warns(UserWarning, match="does not contain a `Shuffler`"):
        assert sorted(loaded(torch, numbers(torch, 9), shuffle=True)) == list(range(9))
    with pytest.raises(ValueError, match="sampler"):
        torch.utils.data.DataLoader(numbers(torch), sampler=[1])
    pipe = numbers(torch, 20).shuffle()
    orders = [loaded(torch, pipe, generator=torch.Generator().manual_seed(n)) for n in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]


def increment(x):
    return x + 1


@pytest.mark.parametrize("context", ["fork", "thread"])
def test_workers_divide_the_items(torch, context):
    pipe = numbers(torch, 20).shuffle().sharding_filter().map(increment)
    loader = torch.utils.data.DataLoader(pipe, batch_size=2, num_workers=2, multiprocessing_context=context, persistent_workers=True)
    epochs = [torch.cat(list(loader)).tolist() for _ in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(1, 21)) and epochs[0] != epochs[1]
    sharded = numbers(torch, 24).sharding_filter()
    sharded.apply_sharding(3, 1)
    parts = loaded(torch, sharded, num_workers=2, multiprocessing_context=context)
    assert sorted(parts) == list(range(1, 24, 3)) and list(sharded) == list(range(1, 24, 3))
    whole = loaded(torch, numbers(torch, 4), num_workers=2, multiprocessing_context=context)
    assert sorted(whole) == [0, 0, 1, 1, 2, 2, 3, 3]
    twice = numbers(torch, 4).sharding_filter().map(increment).sharding_filter()
    with pytest.raises(RuntimeError, match="Sharding twice"):
        loaded(torch, twice, num_workers=1, multiprocessing_context=context)


def test_functions_of_pipes_exist_before_the_first_call():
    program = """
import pickle, teletensor as torch
pipes = torch.utils.data.IterDataPipe
assert {"map", "batch", "shuffle", "zip", "sharding_filter"} <= set(pipes.functions) and "squares" not in pipes.functions
assert set(torch.utils.data.MapDataPipe.functions) == {"batch", "concat", "map", "shuffle", "zip"}
assert isinstance(pipes.functions, dict) and torch.utils.data.DFIterDataPipe.functions is pipes.functions
pipes.register_function("squares", lambda pipe: [x * x for x in pipe])
assert torch.utils.data.datapipes.iter.IterableWrapper([1, 2]).squares() == [1, 4] and "squares" in pipes.functions
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_no_pipe_is_imported_before_a_method_is_used():
    program = """
import sys, teletensor as torch
assert torch.utils.data.IterDataPipe and "teletensor.utils.data.datapipes.map._items" not in sys.modules
assert torch.utils.data.MapDataPipe.functions and "teletensor.utils.data.datapipes.map._items" in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_graph_settings(torch):
    """The functions by which a DataLoader sets what the pipes of a graph do."""
    settings = torch.utils.data.graph_settings
    traverse = torch.utils.data.graph.traverse_dps
    source = numbers(torch, 3)
    mapped = source.map(abs)
    joined = source.zip(mapped)
    assert set(settings.get_all_graph_pipes(traverse(joined))) == {joined, source, mapped}  # each once
    pipe = numbers(torch, 10).shuffle().sharding_filter()
    assert settings.apply_sharding(pipe, 2, 1) is pipe and settings.apply_shuffle_settings(pipe, False) is pipe
    assert list(pipe) == [1, 3, 5, 7, 9]
    with pytest.raises(RuntimeError, match="Sharding twice"):
        settings.apply_sharding(numbers(torch).sharding_filter().map(abs).sharding_filter(), 2, 0)
    with pytest.raises(NotImplementedError, match=r"\[apply_sharding\]"):
        settings.apply_sharding(pipe, 2, 1, 2)
    orders = []
    for seed in (5, 5, 6):
        shuffled = numbers(torch, 20).shuffle()
        assert settings.apply_random_seed(shuffled, torch.Generator().manual_seed(seed)) is shuffled
        orders.append(list(shuffled))
    assert orders[0] == orders[1] != orders[2] and sorted(orders[2]) == list(range(20))
    assert hasattr(settings.apply_shuffle_settings(numbers(torch), True), "set_shuffle")
    with pytest.warns(FutureWarning, match="apply_random_seed"):
        settings.apply_shuffle_seed(pipe, torch.Generator())
