"""torch.func.rearrange, names of torch.nn.functional, torch.monitor."""

import datetime
import importlib

from .rows import values_of

ROWS = """
rearrange(x, "a b c -> c (a b)")
rearrange(x, "(a d) b c -> a d b c", d=2)
rearrange(x, "a ... -> ... a")
rearrange(x, "a b c -> a (b c) 1")
rearrange(x, "a b c -> (a b c)")
rearrange(x, "... c -> (...) c")
rearrange(x, "... c -> c ...")
rearrange(x, "a (b  c) d->d (a b) c", c=3)
rearrange([x, x], "n a b c -> a (n b) c")
rearrange(x, "a b c -> a b")
rearrange(x, "a b -> b a")
rearrange(x, "a a c -> a c")
rearrange(x, "a b c -> (...) c")
rearrange(x, "(...) c -> ... c")
rearrange(x, "a b (c 2) -> a b c 2")
rearrange(x, "a b c, -> a b c")
rearrange(x, "a b c -> a b c e")
rearrange(x, "a b c - > a b c")
rearrange(x, "a (b c -> a b c")
torch.func.debug_unwrap(x), torch.func.functionalize(torch.sin)(x.float())
torch.func.functionalize(torch.sin, remove="nothing")
F.GRID_SAMPLE_INTERPOLATION_MODES, F.GRID_SAMPLE_PADDING_MODES, F.BroadcastingList2[int]
[t.name for t in (F.ScalingType.RowWise, F.SwizzleType.SWIZZLE_32_8)]
F.assert_int_or_pair([1, 2], "a", "{}"), F.assert_int_or_pair(3, "a", "{}")
F.assert_int_or_pair([1], "a", "{}")
F.max_pool1d_with_indices(y, 2), F.max_pool3d_with_indices(y.reshape(1, 2, 3, 4), 2, 1)
F.adaptive_max_pool1d_with_indices(y, 2), F.adaptive_max_pool3d_with_indices(y.reshape(1, 2, 3, 4), (1, 2, 2))
F.native_channel_shuffle(y.reshape(1, 6, 4), 3)
F.rrelu_(y.clone() - 5)
F.boolean_dispatch("flag", 1, False, lambda x, flag=False: x + 1, lambda x, flag=False: x - 1, None, "f")(1, True)
F.boolean_dispatch("flag", 1, True, lambda x, flag=False: x + 1, lambda x, flag=False: x - 1, None, "f")(1)
F.grouped_mm(a, b, offs=offs)
F.grouped_mm(b, b)
F.grouped_mm(b, a.T, offs=offs)
F.grouped_mm(a.T, a, offs=offs)
F.grouped_mm(a, b)
F.grouped_mm(b, b, offs=offs)
"""


def case_functional(torch):
    b = (torch.arange(128.0).reshape(2, 8, 8) / 64 - 1).bfloat16()
    names = {
        "rearrange": torch.func.rearrange, "F": torch.nn.functional, "x": torch.arange(24).reshape(2, 3, 4),
        "y": torch.sin(torch.arange(24.0)).reshape(2, 3, 4) * 10, "a": (torch.arange(64.0).reshape(8, 8) / 32).bfloat16(), "b": b,
        "offs": torch.tensor([3, 8], dtype=torch.int32),
    }  # fmt: skip
    return values_of(torch, ROWS, **names)


def case_batch_norms_without_running_statistics(torch):
    net = torch.func.replace_all_batch_norm_modules_(torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1)))
    x = torch.arange(12.0).reshape(4, 3)
    return [net[0](x), net.eval()[0](x), list(net.state_dict()), net[0].track_running_stats]


def case_monitor(torch):
    m, seen = importlib.import_module(f"{torch.__name__}.monitor"), []
    handle = m.register_event_handler(lambda e: seen.append([e.name, sorted(e.data.items())]))
    kinds = [m.SUM, m.Aggregation.MEAN, m.COUNT, m.MAX, m.MIN]
    stat = m.Stat("x", kinds, datetime.timedelta(days=1000), 2)
    rows = [sorted((k.name, v) for k, v in stat.get().items())]
    for value in (3.0, 5, 1):
        stat.add(value)
        rows.append([stat.count, sorted((k.name, v) for k, v in stat.get().items())])
    open_stat = m.Stat("y", [m.SUM], datetime.timedelta(days=1000))
    open_stat.add(2)
    del open_stat  # logs its last interval
    event = m.Event("n", datetime.datetime(2020, 1, 1), {"a": 1, "b": "s"})
    m.log_event(event)
    written = []

    class Writer:
        def add_scalar(self, *args, **kwargs):
            written.append(args)

    tensorboard = m.register_event_handler(m.TensorboardEventHandler(Writer()))
    m.log_event(m.Event(m.STAT_EVENT, datetime.datetime(2020, 1, 1), {"z": 4.0}))
    for h in (handle, tensorboard):
        m.unregister_event_handler(h)
    m.log_event(event)
    return [*rows, seen, written, stat.name, str(event.timestamp), event.name, values_of(torch, 'm.Event("n", 3, {})', m=m)]
