# ruff: noqa
"""Short functions as users write them, for test_typical_functions.py. `torch` and `nn` are set by the test."""

import bisect, collections, contextlib, copy, dataclasses, enum, functools, heapq, inspect, itertools, json, logging, math, operator, os, random, re
import string, sys, time, types, typing, warnings

from teletensor import nn
import teletensor as torch

@dataclasses.dataclass
class P: a: object; b: int = 2
@dataclasses.dataclass(frozen=True)
class FP: a: int = 3
NT = collections.namedtuple('NT', 'u v')
class TN(typing.NamedTuple):
    u: object; v: int = 1
class Color(enum.Enum): RED = 1; BLUE = 2
class IE(enum.IntEnum): A = 2; B = 5
class Flag(enum.Flag): A = 1; B = 2
class Ctx:
    def __init__(s): s.n = 0
    def __enter__(s): s.n += 1; return s
    def __exit__(s, *a): s.n += 1; return False
class Sup(Ctx):
    def __exit__(s, *a): return True
@contextlib.contextmanager
def cm(v):
    yield v + 1
class Base:
    k = 3
    def f(s, x): return x + s.k
class Derived(Base):
    k = 4
    def f(s, x): return super().f(x) * 2
    @property
    def p(s): return s.k + 1
    @classmethod
    def c(cls, x): return x * cls.k
    @staticmethod
    def st(x): return x - 1
    def __getattr__(s, n): 
        if n == 'dyn': return 7
        raise AttributeError(n)
    def __getitem__(s, i): return i * 2
    def __call__(s, x): return x * 9
    def __len__(s): return 3
    def __contains__(s, v): return v == 3
    def __iter__(s): return iter([1, 2])
    def __eq__(s, o): return isinstance(o, Derived)
    def __hash__(s): return 5
class Desc:
    def __get__(s, o, t): return 11
    def __set__(s, o, v): o.__dict__['_d'] = v
class WD: d = Desc()
class Meta(type):
    def __call__(cls, *a): o = super().__call__(*a); o.extra = 5; return o
class WM(metaclass=Meta):
    def __init__(s, v): s.v = v
class Slots:
    __slots__ = ('a',)
    def __init__(s, a): s.a = a
class Mod(nn.Module):
    def __init__(s): super().__init__(); s.count = 0; s.lin = nn.Linear(4, 4); s.seen = []; s.reg = {}
    def forward(s, x):
        s.count += 1; s.seen.append(s.count); s.reg['k'] = s.count
        return x * s.count
mod = Mod()
@functools.cache
def cached(n): return n * 2
@functools.lru_cache(maxsize=8)
def lru(n): return n + 1
def deco(f):
    @functools.wraps(f)
    def w(*a, **k): return f(*a, **k) + 1
    return w
@deco
def decorated(x, *, y=2): return x * y
@functools.singledispatch
def sd(v): return 1
@sd.register(int)
def _(v): return v + 1
log = logging.getLogger('x')
def gen(n):
    for i in range(n):
        y = yield i
def fwd(f, *a, **k): return f(*a, **k)
def t_dataclass(x): p = P(x); p.b = 5; return p.a * p.b
def t_dataclass_replace(x): p = dataclasses.replace(P(x), b=4); return p.a * p.b
def t_dataclass_asdict(x): return x * sum(dataclasses.asdict(FP(4)).values())
def t_dataclass_fields(x): return x * len(dataclasses.fields(P))
def t_frozen(x): return x * FP().a + (1 if FP(2) == FP(2) else 0)
def t_namedtuple(x): n = NT(x, 2); u, v = n; return n._replace(v=3).v * u + n._asdict()['v']
def t_typednt(x): return TN(x).u * TN(x).v
def t_enum(x): return x * (2 if Color.RED is Color(1) else 3) + Color['BLUE'].value
def t_enum_iter(x): return x * sum(c.value for c in Color) + len(Color)
def t_intenum(x): return x * IE.A + IE(5)
def t_flag(x): return x * (Flag.A | Flag.B).value + (1 if Flag.A in (Flag.A | Flag.B) else 0)
def t_ctx(x):
    with Ctx() as c: x = x + c.n
    return x * c.n
def t_ctx_suppress(x):
    with Sup(): raise ValueError
    return x + 1
def t_suppress(x):
    with contextlib.suppress(KeyError): {}['a']
    return x + 1
def t_cm(x):
    with cm(3) as v: return x * v
def t_exitstack(x):
    with contextlib.ExitStack() as st: c = st.enter_context(Ctx()); x = x + c.n
    return x
def t_nullctx(x):
    with contextlib.nullcontext(4) as v: return x * v
def t_gen(x): return sum((x * i for i in gen(3)), x)
def t_gensend(x): g = gen(3); next(g); return x * g.send(5)
def t_yieldfrom(x):
    def g(): r = yield from gen(2); yield 7
    return x * sum(g())
def t_finally(x):
    try: x = x + 1
    finally: x = x * 2
    return x
def t_except(x):
    try: raise KeyError('a')
    except (KeyError, ValueError) as e: return x * len(e.args)
    else: return x
def t_exc_from(x):
    try:
        try: raise KeyError
        except KeyError as e: raise ValueError('b') from e
    except ValueError as e: return x + (e.__cause__ is not None)
def t_fstring(x): return x * len(f"{x.shape[0]:>5}|{3.5:.2f}|{'a'!r}")
def t_format(x): return x * len("{}-{k}".format(1, k=2) + "%d %s" % (3, 'a'))
def t_strmeth(x): return x * len("a,b,c".split(',')) + "abc".find('c') + len(' '.join(['a', 'b']).upper().replace('A', 'zz').strip())
def t_dictcomp(x): return {k: x * v for k, v in zip('ab', (1, 2))}['b']
def t_setcomp(x): return x * len({i % 2 for i in range(5)})
def t_args(x): return fwd(lambda a, *b, c=1, **d: a * c + len(b) + d['e'], x, 1, 2, c=3, e=4)
def t_partial(x): return functools.partial(fwd, torch.add)(x, x, alpha=2)
def t_cache(x): return x * cached(3)
def t_lru(x): return x * lru(3)
def t_reduce(x): return functools.reduce(lambda a, b: a * b, [x, x, x])
def t_wraps(x): return decorated(x, y=3)
def t_singledispatch(x): return x * sd(3)
def t_chain(x): return sum(x * i for i in itertools.chain([1], (2, 3)))
def t_product(x): return x * sum(a * b for a, b in itertools.product([1, 2], repeat=2))
def t_islice(x): return x * sum(itertools.islice(itertools.count(2), 3))
def t_accumulate(x): return x * list(itertools.accumulate([1, 2, 3]))[-1]
def t_groupby(x): return x * len([k for k, g in itertools.groupby([1, 1, 2])])
def t_combos(x): return x * len(list(itertools.combinations(range(4), 2))) + len(list(itertools.permutations([1, 2, 3])))
def t_ziplongest(x): return x * sum(a + b for a, b in itertools.zip_longest([1, 2], [3], fillvalue=0))
def t_cycle(x): c = itertools.cycle([1, 2]); return x * (next(c) + next(c) + next(c))
def t_pairwise(x): return x * sum(b - a for a, b in itertools.pairwise([1, 4, 9]))
def t_starmap(x): return x * sum(itertools.starmap(pow, [(2, 3), (3, 2)]))
def t_takewhile(x): return x * sum(itertools.takewhile(lambda v: v < 3, [1, 2, 3, 1])) + sum(itertools.dropwhile(lambda v: v < 3, [1, 2, 3, 1]))
def t_tee(x): a, b = itertools.tee([1, 2]); return x * (sum(a) + sum(b))
def t_repeat(x): return x * sum(itertools.repeat(3, 2)) + sum(itertools.compress([1, 2, 3], [1, 0, 1]))
def t_defaultdict(x): d = collections.defaultdict(list); d['a'].append(x); return d['a'][0] * len(d)
def t_counter(x): c = collections.Counter('aab'); return x * c['a'] + c.most_common(1)[0][1]
def t_deque(x): d = collections.deque([1, 2], maxlen=2); d.append(3); return x * d[0]
def t_ordereddict(x): d = collections.OrderedDict(a=1, b=2); d.move_to_end('a'); return x * list(d.values())[0]
def t_chainmap(x): return x * collections.ChainMap({'a': 1}, {'b': 2})['b']
def t_nograd(x):
    with torch.no_grad(): y = x * 2
    return y + x
def t_enable(x):
    with torch.set_grad_enabled(False): y = x + 1
    return y
def t_inference(x):
    with torch.inference_mode(): return x * 2
def t_modattr(x): return mod(x)
def t_listmut(x): l = [x]; l.append(x + 1); l.insert(0, x * 2); l.sort(key=lambda t: 0); l.reverse(); return l.pop() + len(l)
def t_zipstrict(x): return x * sum(a * b for a, b in zip([1, 2], [3, 4], strict=True))
def t_walrus(x): return x * n if (n := x.shape[0]) > 2 else x
# As text, for linters that expect an older Python.
exec("""
def t_match(x):
    match x.shape:
        case (a, b) if a > 100: return x
        case (a, b): return x * a
def t_match_cls(x):
    match P(1, 2):
        case P(a=1, b=b): return x * b
def t_match_map(x):
    match {'op': 'add', 'v': 3}:
        case {'op': 'add', **rest}: return x + rest['v']
""")
def t_nonlocal(x):
    n = 0
    def inc():
        nonlocal n; n += 1
    inc(); inc(); return x * n
def t_print(x): print('hi', file=sys.stderr); return x + 1
def t_log(x): log.info('a %s', 3); return x + 1
def t_warn(x): warnings.warn('w'); return x + 1
def t_isinstance(x): return x * (1 if isinstance(x, (int, str)) else 2 if isinstance(x, torch.Tensor) else 3) + issubclass(Derived, Base)
def t_sizelist(x): return x * list(x.size())[0] + x.size().numel()
def t_random(x): return x * 0 + (random.random() < 2)
def t_randint(x): return x * 0 + (random.randint(1, 1))
def t_time(x): t = time.time(); return x + (t > 0)
def t_perf(x): t = time.perf_counter(); return x + (t > 0)
def t_environ(x): return x + (1 if os.environ.get('NOPE', 'a') == 'a' else 0)
def t_getenv(x): return x + len(os.getenv('NOPE', 'ab'))
def t_path(x): return x + len(os.path.join('a', 'b'))
def t_re(x): return x * (2 if re.match(r'a+', 'aab') else 3)
def t_resub(x): return x * len(re.sub('a', 'bb', 'aaa'))
def t_inspect(x): return x * len(inspect.signature(fwd).parameters)
def t_cast(x): return typing.cast(torch.Tensor, x) * 2
def t_super(x): return Derived().f(x)
def t_prop(x): return x * Derived().p
def t_getattr(x): return x * Derived().dyn + getattr(Derived(), 'nope', 3) + hasattr(Derived(), 'k')
def t_clsm(x): return Derived.c(Derived.st(x))
def t_dunder(x): d = Derived(); return d(x) * d[2] + len(d) + (3 in d) + sum(d)
def t_eqhash(x): return x * (Derived() == Derived()) + len({Derived(): 1})
def t_desc(x): w = WD(); w.d = 3; return x * w.d
def t_meta(x): return x * WM(2).extra
def t_slots(x): s = Slots(3); s.a += 1; return x * s.a
def t_delattr(x): p = P(x); del p.b; return p.a * p.b
def t_setattr(x): p = P(x); setattr(p, 'zz', 3); return p.a * p.zz + len(vars(p))
def t_copy(x): return x * len(copy.copy([1, 2])) + len(copy.deepcopy({'a': [1]})['a'])
def t_operator(x): return operator.itemgetter(1)([1, x]) * operator.attrgetter('k')(Base()) + operator.methodcaller('f', 1)(Base())
def t_sorted(x): return x * sorted([3, 1, 2], key=lambda v: -v, reverse=True)[0] + max([1, 5], key=lambda v: -v) + min(3, 2)
def t_enumrev(x): return x * sum(i * v for i, v in enumerate(reversed([1, 2, 3]), 1))
def t_anyall(x): return x * any([0, 1]) + all([]) + sum(map(int, ['1', '2'])) + len(list(filter(None, [0, 1])))
def t_slice(x): return x * len([1, 2, 3, 4][slice(1, None, 2)]) + x[slice(0, 2)].sum()
def t_star(x): a, *b = [x, 1, 2]; return a * sum([*b, *(3,)]) + len({**{'a': 1}, 'b': 2})
def t_chained(x): return x * (1 < 2 < 3) + (x.dim() == 2 and 1 or 0)
def t_divmod(x): q, r = divmod(x.shape[0] * 7, 3); return x * q + r
def t_bytes(x): return x * len(b'abc'.hex()) + int('ff', 16) + ord('a') + len(chr(65))
def t_frozenset(x): return x * len(frozenset([1, 2]) | {3}) + (1 in frozenset([1]))
def t_dictmeth(x): d = {'a': 1}; d.update(b=2); d.setdefault('c', 3); d |= {'e': 1}; return x * sum(d.values()) + d.pop('a') + len(d.keys() & {'b'})
def t_typeof(x): return x * (type(x) is torch.Tensor) + len(type(3).__name__)
def t_lambda_default(x): fs = [lambda v, i=i: v * i for i in range(3)]; return fs[2](x)
def t_recursion(x):
    def f(n): return x if n == 0 else f(n - 1) + 1
    return f(3)
def t_while(x):
    i = 0
    while True:
        i += 1
        if i == 2: continue
        if i > 3: break
    else: i = 99
    return x * i
def t_assert(x): assert x.dim() == 2, 'bad'; return x
def t_raise_msg(x):
    if x.dim() != 2: raise ValueError(f'{x.shape}')
    return x + 1
def t_global(x): global G; G = 4; return x * G
def t_types(x): return types.SimpleNamespace(a=x).a * 2
def t_mappingproxy(x): return x * types.MappingProxyType({'a': 2})['a']
def t_abs(x): return x * math.prod([1, 2, 3]) + math.gcd(4, 6) + math.isclose(1.0, 1.0) + math.floor(2.5)
def t_tensoriter(x): return sum(r.sum() for r in x)
def t_inplace(x): y = x.clone(); y += 1; y[0] = 5; y[:, 1] *= 2; return y
def t_id(x): return x * (id(x) == id(x))
def t_callable(x): return x * callable(fwd) + callable(3)
def t_nested_fn_attr(x):
    def f(v): return v
    f.k = 3
    return f(x) * f.k
def t_decimal(x): return x * len(str(3.25)) + float('1.5') + int(2.9) + round(2.567, 1)
def t_partialmethod(x): return functools.partial(Base.f, Base())(x)
def t_cmp_key(x): return x * sorted([3, 1], key=functools.cmp_to_key(lambda a, b: a - b))[0]
def t_bisect(x):
    return x * bisect.bisect([1, 3, 5], 4)
def t_heapq(x):
    h = [3, 1, 2]; heapq.heapify(h); heapq.heappush(h, 0); return x * heapq.heappop(h) + h[0]
def t_bisect_left(x): l = [1, 3, 5]; l.append(9); return x * bisect.bisect_left(l, 9) + bisect.bisect_right(l, 1, lo=1)
def t_bisect_key(x): return x * bisect.bisect_left([(1, 2), (3, 4)], 3, key=lambda v: v[0])
def t_string(x): return x + len(string.ascii_lowercase)
def t_json(x):
    return x * len(json.dumps({'a': 1}))
def t_dt(x): return x * torch.finfo(x.dtype).bits + torch.iinfo(torch.int32).max * 0
def t_getdev(x): return torch.zeros_like(x, device=x.device, dtype=x.dtype) + (x.device.type == 'cpu')
def t_numel_loop(x): return sum(x[i, j] for i in range(x.shape[0]) for j in range(2))
