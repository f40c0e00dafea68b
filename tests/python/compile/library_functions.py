# ruff: noqa
"""Functions that call the standard library, for test_library_functions.py: in graphs (g_*), with a break (b_*), and either way (n_*)."""

import bisect, collections, functools, heapq, io, itertools, json, random, re, sys, time, types, warnings
from random import randint as draw_int, random as draw

import teletensor as torch

P = re.compile(r"(?P<name>[a-z]+)=(\d+)")
RNG = random.Random(7)
STREAM = io.StringIO()
n_calls = 0
class Holder:
    def __init__(self): self.rng = random.Random(5); self.flag = True
holder = Holder()
class Counted(type):
    made = 0
    def __call__(cls, *args, **kwargs):
        o = super().__call__(*args, **kwargs); o.extra = len(args) + len(kwargs); return o
class Point(metaclass=Counted):
    def __init__(self, x, y=1): self.x, self.y = x, y
class Child(Point):
    def __init__(self, x): super().__init__(x, y=4)
class Single(type):
    made = {}
    scale = 3
    def __call__(cls, *args):
        if cls not in cls.made: cls.made[cls] = super().__call__(*args)
        return cls.made[cls]
    def twice(cls, x): return x * 2 * cls.scale
class Settings(metaclass=Single):
    def __init__(self): self.factor = 3
class Failure(ValueError, metaclass=Counted): pass
class Skips(type):
    def __call__(cls, *args): return (cls.__name__, *args)
class Never(metaclass=Skips): pass
class Keyed:
    def __init__(self, k): self.k = k
    def __lt__(self, o): return self.k < o.k

def g_plain(x): return x * 2 + 1
def g_random(x): return x + random.random()
def g_order(x): a = random.random(); b = random.randint(1, 100); c = random.uniform(2, 3); return x * a + b - c
def g_unused(x): random.random(); return x + 1
def g_returned(x): return x + 1, random.random(), random.randint(0, 1000), [random.gauss(0, 1)]
def g_compared(x): return x * (random.random() < 0.5) + (random.randint(1, 6) == 6)
def g_range(x): return x + random.randrange(5) * 2 + random.randrange(0, 100, 7)
def g_reflected(x): return 3 - random.random() * x / 2 + 1 / x.add(1) * random.random()
def g_in_place(x): y = x.clone(); y += random.random(); y *= -random.randint(1, 9); return y
def g_names(x): return x * draw() + draw_int(3, 9)
def g_global_rng(x): return x + RNG.random() + RNG.randint(1, 50)
def g_attribute_rng(x): return x * holder.rng.uniform(-1, 1)
def g_seed(x): random.seed(12); return x + random.random(), random.random()
def g_choice(x): return x * random.choice([1.5, 2.5, 3.5]) + random.choice((1, 2, 3))
def g_int(x): return x + int(random.random() * 10) / 4 + float(random.randint(1, 3))
def g_bits(x): return x + random.getrandbits(8)
def g_kwargs(x): return x + random.uniform(a=1.0, b=2.0) + random.triangular(0, 10, mode=2) + random.gauss(mu=3, sigma=2)
def g_distributions(x): return x + random.expovariate(2) + random.betavariate(1, 2) + random.gammavariate(2, 1) + random.normalvariate(1, 2) + random.vonmisesvariate(0, 1)
def g_nested_draw(x):
    def f(k): return random.random() * k
    return x * f(2) + f(3)
def g_list_of_draws(x): return sum((x * random.random() for _ in range(3)), x), [random.random() for _ in range(2)]
def g_print(x): print("a", 1, 2.5, None, True, sep="-", end="!\n"); return x + 1
def g_print_after(x): y = x * 2; print("shape", y.shape[1]); return y
def g_print_order(x): print("1"); y = x + 1; print("2"); z = y * 2; print(f"{z.dim()} 3", flush=True); return z
def g_print_file(x): print("err", file=sys.stderr); print("mem", file=STREAM); print(file=None); return x
def g_print_list(x): l = [1, 2]; print(l, {"a": (1, None)}); l.append(3); print(l); return x * len(l)
def g_print_random(x): r = random.random(); print(r, random.randint(1, 1000)); return x * r
def g_print_counter(x):
    global n_calls; n_calls += 1; print("calls", n_calls); return x * n_calls
def g_print_size(x): print(x.shape[0], "rows", x.size(1)); return x + 1
def g_print_in_call(x):
    def f(k): print("in", k); return k + 1
    return x * f(f(1))
def g_print_nograd(x):
    with torch.no_grad(): print("inside"); y = x * 2
    return y
def g_print_exception(x):
    try: raise ValueError("bad", 3)
    except ValueError as e: print(e, repr(e))
    return x
def g_match(x): m = re.match(r"(a+)(b)?", "aac"); return x * len(m.group(1)) + (m[2] is None) + m.end() + m.span(1)[1] + bool(m)
def g_no_match(x): return x if re.search("z", "abc") is None else x + 1
def g_pattern(x): return x * sum(int(m.group(2)) for m in P.finditer("a=1 b=22 c=3")) + len(P.findall("a=1,b=2")) + P.groups
def g_pattern_dict(x): m = P.search("xx=5;"); return x * int(m.groupdict()["name"] == "xx") + P.groupindex["name"] + m.lastindex
def g_compile(x): p = re.compile("a|b", re.I); return x * len(p.split("1A2b3")) + len(re.escape("a.b")) + (p.pattern == "a|b") + (p.flags > 0)
def g_sub(x): return x * len(re.sub(r"\d", lambda m: m.group() * 2, "1a23", count=2)) + re.subn("a", "b", "aaa")[1] + len(re.sub(r"", "-", "abc"))
def g_sub_empty(x): return x, re.sub(r"x*", lambda m: f"<{m.start()}>", "axxb"), re.subn("x*", lambda m: "-", "abxd")
def g_returned_match(x): m = re.match("(a)(b)", "ab"); return x + 1, m.groups(), m.string
def g_json(x): return x * len(json.dumps({"a": [1, 2.5, None, True], "b": {"c": "é"}}, sort_keys=True, indent=2)) + json.loads('{"a": [1, 2]}')["a"][1]
def g_json_loads(x): d = json.loads('{"k": [1, {"z": 2}]}'); d["k"].append(3); return x, d
def g_json_shape(x): return x * len(json.dumps({"shape": list(x.shape), "d": str(x.dtype)}))
def g_json_error(x):
    try: json.dumps({"a": float("nan")}, allow_nan=False)
    except ValueError: return x + 7
    return x
def g_heap(x):
    h = [5, 3, 8, 1]; heapq.heapify(h); heapq.heappush(h, 0); a = heapq.heappop(h); b = heapq.heappushpop(h, 4); c = heapq.heapreplace(h, 9)
    return x * (a + 10 * b + 100 * c), h
def g_heap_tensors(x):
    h = []
    for i in (3, 1, 2): heapq.heappush(h, (i, x * i))
    return [heapq.heappop(h)[1] for _ in range(3)]
def g_heap_objects(x): h = [Keyed(3), Keyed(1), Keyed(2)]; heapq.heapify(h); return x * heapq.heappop(h).k + heapq.heappop(h).k
def g_heap_many(x): return x, heapq.nlargest(3, [4, 1, 7, 3, 9]), heapq.nsmallest(2, [4, 1, 7], key=lambda v: -v), list(heapq.merge([1, 4], [2, 3]))
def g_heap_ties(x): h = [(1, "b"), (1, "a"), (0, "c"), (1, "a")]; heapq.heapify(h); return x, h
def g_heap_empty(x):
    try: heapq.heappop([])
    except IndexError as e: return x * len(str(e))
    return x
def g_bisect(x):
    rows = [(1, "a"), (3, "b"), (3, "c"), (5, "d")]
    l = [1, 3, 5]; bisect.insort(l, 4); bisect.insort_left(l, 3)
    return x * bisect.bisect_left(rows, 3, key=lambda r: r[0]) + bisect.bisect(rows, 3, key=lambda r: r[0]) + bisect.bisect(rows, (3, "b")), l
def g_tee(x):
    a, b, c = itertools.tee(iter([1, 2, 3]), 3); n = next(a)
    return x * (n + sum(b)) + list(a)[0] + len(list(zip(c, "ab")))
def g_tee_lazy(x):
    seen = []
    def f():
        for i in range(3): seen.append(i); yield i
    a, b = itertools.tee(f()); next(a); next(a); next(b); return x * len(seen)
def g_proxy(x):
    d = {"a": 2}; p = types.MappingProxyType(d); d["b"] = 3
    return x * p["a"] + p.get("b") + len(p) + ("b" in p) + sum(p.values()) + (p == {"a": 2, "b": 3}) + len(p.copy()) + isinstance(p, dict)
def g_proxy_kept(x): d = {"a": x + 1}; p = types.MappingProxyType(d); return p, d
def g_proxy_write(x):
    p = types.MappingProxyType({"a": 1})
    try: p.update(b=1)
    except AttributeError: return x + 3
    return x
def g_metaclass(x): p = Point(2, y=3); c = Child(x); return x * p.x * p.y * p.extra + c.x * c.y + c.extra
def g_metaclass_other(x): return x * len(Never(1, 2)) + (Never()[0] == "Never")
def g_singleton(x): return x * Settings().factor + (Settings() is Settings()) + Settings.twice(x) + Settings.scale
def g_metaclass_of_exception(x):
    try: raise Failure("a", "b")
    except ValueError as e: return x * e.extra
def g_double(x): y = x.double(); return y * random.random() + random.random() / y - random.randint(0, 1 << 40)
def g_written(x): holder.last = random.random(); holder.flag = random.random() < 0.5; return x + holder.last
def g_closure(x):
    r = random.random()
    def f(v): return v * r
    return f(x) + f(r)
def g_returned_expression(x): a = random.random() * 2; return x, a + 1, -a, a < 1, int(a * 100), {"k": (a,)}
def b_limits(x): return x * max(random.random(), 0.5)
def b_sorted(x): return x * sorted([random.random(), random.random()])[0]
def b_sequence(x): return x * len([1] * random.randint(1, 3)), "a" * random.randint(0, 2), [1, 2, 3][: random.randint(1, 2)]
def b_range(x): return x + sum(range(random.randint(2, 5)))
def b_full(x): return x + torch.full((4,), random.random())
def b_dict(x): return x * {1: 2, 2: 5}[random.randint(1, 2)]
def b_math(x): import math; return x * math.sqrt(random.random()) + round(random.random(), 2) + abs(random.random() - 1)
def b_contains(x): return x * (random.randint(1, 3) in (1, 2))
def b_argument(x): return torch.add(x, x, alpha=random.randint(1, 5)), x.clamp(min=random.random())
def b_zero_dim(x): return x.sum() * random.random()
def b_checkpoint(x):
    from teletensor.utils.checkpoint import checkpoint
    return checkpoint(lambda v: v * random.random(), x, use_reentrant=False)
def b_grad(x): return torch.func.grad(lambda v: (v * random.random()).sum())(x)
def b_branch(x): return x + 1 if random.random() < 0.5 else x - 1
def b_index(x): return x[random.randrange(3)]
def b_text(x): return x, f"{random.random():.3f}"
def b_item_of_list(x): return x * [1, 2, 3][random.randint(0, 2)]
def b_shuffle(x): l = [1, 2, 3, 4]; random.shuffle(l); return x * l[0], random.random()
def b_sample(x): return x * random.sample([1, 2, 3], 2)[0]
def b_int_tensor(x): return x.long() * random.randint(1, 100) + random.randint(1, 3)
def b_power(x): return x.abs() ** random.random()
def b_error(x):
    try: random.randint(5, 1)
    except ValueError: return x + random.random()
def b_divided(x): return x * (1 / random.random())
def b_tensor(x): y = x + 1; print(y.sum()); return y * random.random()
def b_item(x): print("sum", x.sum().item()); print("next"); return x + 1
def b_mixed(x): a = random.random(); print("first", a); y = x * a; print(y[0, 0]); return y + random.random()
def b_warn(x): print("before"); warnings.warn("w"); print("after"); return x + random.random()
def b_state(x): s = random.getstate(); a = random.random(); random.setstate(s); return x * a + random.random()
def b_made(x): return x + random.Random(3).random() + random.random()
def g_returned_spans(x): return x + 1, re.match("(a)(b)", "ab").span(), [m.group() for m in re.finditer("a|b", "ab")]
def b_time(x): return x + 1 if time.time() > 0 else x
def n_vmap(x): r = random.random(); return torch.vmap(lambda v: v * r)(x)
def n_checkpoint(x):
    from teletensor.utils.checkpoint import checkpoint
    r = random.random(); return checkpoint(lambda v: v * r, x, use_reentrant=False)
def n_cond(x): r = random.random(); return torch.cond(x.sum() > 0, lambda v: v * r, lambda v: v - r, (x,))
def n_grad(x): r = random.random(); return torch.func.grad(lambda v: (v * r).sum())(x)
def n_backward(x): w = x.detach().requires_grad_(); (w * random.random()).sum().backward(); return w.grad
def n_bfloat16(x): return x.bfloat16() * random.random(), x.to(torch.int64) + random.randint(1, 5)
def n_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16): return (x @ x.T) * random.random()
def n_many(x):
    for _ in range(20): x = x * (0.5 + random.random())
    return x
