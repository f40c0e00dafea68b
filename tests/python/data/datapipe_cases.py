"""Cases with data pipes, whose results PyTorch gives too (values in datapipes.json)."""

from __future__ import annotations

import json
from pathlib import Path

RECORDED = Path(__file__).with_name("datapipes.json")
ITER = """
I(4) I(4).map(str) I([(1,2),(3,4)]).map(add,input_col=[0,1]) I([(1,2),(3,4)]).map(neg,input_col=1,output_col=0)
I([(1,2),(3,4)]).map(neg,input_col=1,output_col=-1) I([[1,2],[3,4]]).map(neg,1) I(4).map(neg,output_col=1)
I(9).filter(even) I([(1,2),(3,4)]).filter(even,input_col=1) I(3).filter(neg) I(7).batch(3) I(7).batch(3,drop_last=True)
I(8).batch(2).batch(2) I(7).batch(0) I(8).batch(2).batch(2).unbatch() I(8).batch(2).batch(2).unbatch(unbatch_level=2)
I(8).batch(2).batch(2).unbatch(unbatch_level=-1) I(4).unbatch() I(4).unbatch(unbatch_level=-2) I(9).groupby(mod3)
I(9).groupby(mod3,keep_key=True) I(9).groupby(mod3,group_size=2) I(9).groupby(mod3,buffer_size=4,group_size=3,guaranteed_group_size=2)
I(9).groupby(mod3,buffer_size=4,group_size=3,guaranteed_group_size=3)
I(9).groupby(mod3,buffer_size=4,group_size=3,guaranteed_group_size=2,drop_remaining=True)
I(3).concat(I(2)) I(3).zip(I(2),I(4)) I(3).mux(I(2)) [list(p)for(p)in(I(3).fork(2))] [list(p)for(p)in(I(6).demux(2,odd))]
I(3).fork(0) I(6).demux(2,neg) list(zip(*I(3).fork(3))) list(zip(*I(6).demux(2,odd))) list(I(9).fork(2,buffer_size=2)[0])
I(7).sharding_filter() sharded(I(7).sharding_filter()) I(6).shuffle(buffer_size=1) sorted(I(20).shuffle())
I(6).shuffle().set_shuffle(False) I(9).shuffle().set_seed(3) I(9).shuffle(buffer_size=4).set_seed(5) I(2).shuffle(buffer_size=0)
len(I(7).batch(3)) len(I(7).batch(3,drop_last=True)) len(I(3).concat(I(2))) len(I(3).zip(I(2))) len(I(3).mux(I(2))) len(I(7).map(neg))
len(I(9).filter(even)) len(sharded_pipe(I(7).sharding_filter()))
I(3).nothing [x.tolist()for(x)in(I(4).batch(2).collate())]
two(I(3)) twice(I(3)) M("abc") M("abc").map(str.upper) M(range(7)).batch(3) M(range(7)).batch(3,drop_last=True) M("ab").concat(M("cd"))
M("ab").zip(M("cde")) sorted(M("abc").shuffle()) list(M(range(9)).shuffle().set_seed(3)) M("abc")[5]
M("abc").concat(M("d"))[9] M("abc").zip()
forks(I(4).fork(2),"ab",1,9) forks(I(4).fork(2),"aabb",1,2,9,9) forks(I(4).fork(2),"aba",9,1,1) forks(I(4).fork(2),"abab",9,9,9,9)
forks(I(6).demux(2,odd),"ba",1,9) stale(I(4).fork(2))
list(M(range(5)).shuffle().set_shuffle(False)) chunk(I(3).batch(3))
"""


def two(pipe):
    """Whether an iterator is invalid after another one has begun."""
    first = iter(pipe)
    next(first)
    second = iter(pipe)
    next(second)
    return next(first)


def forks(pipes, order, *counts):
    """Items of new iterators of the pipes a, b, ...; a letter's first iterator is also continued at the end."""
    found, first = [], {}
    for letter, count in zip(order, counts):
        source = iter(pipes["ab".index(letter)])
        found.append([x for _, x in zip(range(count), source)])
        first[letter] = source
    return found, [list(source) for source in first.values()]


def stale(pipes):
    """An iterator of a round that has ended."""
    first, second = iter(pipes[0]), iter(pipes[1])
    next(first), next(second)
    next(iter(pipes[0]))
    return next(second)


def sharded_pipe(pipe):
    """The second of three shards."""
    pipe.apply_sharding(3, 1)
    return pipe


def names(torch):
    """The names that the cases use."""
    pipes = torch.utils.data.datapipes
    return {
        "I": lambda x: pipes.iter.IterableWrapper(range(x) if isinstance(x, int) else x), "M": pipes.map.SequenceWrapper,
        "add": lambda a, b: a + b, "neg": lambda a: -a, "even": lambda a: a % 2 == 0, "odd": lambda a: a % 2, "mod3": lambda a: a % 3,
        "two": two, "twice": lambda p: [list(p), list(p)], "sharded_pipe": sharded_pipe, "sharded": lambda p: list(sharded_pipe(p)),
        "forks": forks, "stale": stale,
        "chunk": lambda p: [(c.as_str("> "), list(c.raw_iterator())) for c in p],
    }  # fmt: skip


def outcome(torch, code):
    """The items of a pipe, another value, or the name of the exception."""
    try:
        value = eval(code, names(torch))  # noqa: S307 - the rows above
        if isinstance(value, torch.utils.data.MapDataPipe):
            value = [value[i] for i in range(len(value))]
        elif isinstance(value, torch.utils.data.IterDataPipe):
            value = list(value)
        return json.loads(json.dumps(value))
    except Exception as e:
        return f"!{type(e).__name__}"


if __name__ == "__main__":
    import torch

    rows = {code: outcome(torch, code) for code in ITER.split()}
    RECORDED.write_text("{\n" + ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items()) + "\n}\n")
