"""torch.utils.benchmark's tables and torch.utils.weak."""

import contextlib
import importlib
import io
import math

from .record import error


def case_benchmark_tables(torch):
    b = importlib.import_module(f"{torch.__name__}.utils.benchmark")
    results = []
    for n in (1, 30):
        for threads in (1, 2):
            for name, factor in (("first", 1), ("second", 2.5), ("third", 20)):
                spec = b.TaskSpec("stmt", "", "", "label", f"size {n}", name, None, threads)
                if not (n == 30 and name == "third"):
                    times = [1e-5 * n * factor / threads * (1 + k * k / 300) for k in range(9)]
                    results.append(b.Measurement(2, [2 * t for t in times], spec))
    m = results[0]
    rows = [m.median, m.mean, m.iqr, m.significant_figures, m.has_warnings, m.title, m.as_row_name, len(b.Measurement.merge(results * 2))]
    rows += ["\n".join(repr(m).splitlines()[1:]), *(list(b.select_unit(t)) for t in (3e-8, 2e-5, 0.4, 7.0))]
    rows += [b.trim_sigfig(3.14159, 2), b.trim_sigfig(123456.0, 3), b.unit_to_english("us"), b.ordered_unique([2, 1, 2])]
    for change in ("", "trim_significant_figures", "highlight_warnings"):
        table = b.Compare(results)
        if change:
            getattr(table, change)()
        with contextlib.redirect_stdout(io.StringIO()) as out:
            table.print()
        rows.append([" ".join(line.split()) for line in out.getvalue().splitlines()])
    rows.append(error(b.Compare, [3]))
    return rows


def case_benchmark_spec(torch):
    b = importlib.import_module(f"{torch.__name__}.utils.benchmark")
    spec = b.TaskSpec("a\nb", "c\nd", sub_label="s")
    timer = b.Timer("x = y + 1", globals={"y": 1}, timer=iter(range(10**6)).__next__)
    m = timer.timeit(10)
    return [
        spec.title, spec.setup_str(), spec.summarize(), m.number_per_run, len(m.times), m.times[0],
        error(b.Timer, 3), error(b.Timer, "pass", global_setup="x"), error(timer.repeat), math.isclose(m.median, m.mean),
    ]  # fmt: skip


def case_weak(torch):
    weak = importlib.import_module(f"{torch.__name__}.utils.weak")
    a, b = torch.ones(2), torch.ones(2)
    d = weak.WeakTensorKeyDictionary({a: 1})
    d[b] = 2
    ref, rows = weak.TensorWeakRef(a), [len(d), d[a], d[b], a in d, torch.ones(2) in d, 3 in d, sorted(d.values())]
    e = d.copy()
    rows += [e == d, ref() is a, d.pop(b), len(d), len(e), len(d | {b: 3}), d.setdefault(b, 9), d.get(torch.ones(1), 4)]
    del a
    return [*rows, len(d), ref() is None, error(weak.TensorWeakRef, 3)]
