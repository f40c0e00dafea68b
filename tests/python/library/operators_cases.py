"""Custom operators: schemas, kernels, derivatives, autocast and errors."""

from collections.abc import Sequence
from typing import Optional, Union

from tests.python.names.record import error

from .record import namespace


def first_word(text):
    """The exception's type."""
    return text.partition(":")[0]


def case_schemas(torch):
    tensor, infer, cpu = torch.Tensor, torch.library.infer_schema, torch.device("cpu")

    def every(
        x: tensor, y: Optional[tensor], rows: list[tensor], s: Sequence[int], fs: Sequence[float], i: int, k: float = 1.5,
        b: bool = True, st: str = "a", d: torch.device = cpu, dt: torch.dtype = torch.float32,
        sc: Union[int, float, bool] = 3, *, oi: Optional[int] = None, os: Optional[Sequence[int]] = None,
    ) -> tuple[tensor, list[tensor], int]: ...  # fmt: skip

    def nothing(x: tensor) -> None: ...

    def no_return(x: tensor): ...

    def bad_type(x: dict) -> tensor: ...

    return [
        infer(every, mutates_args=()),
        infer(every, mutates_args=("x",), op_name="ns::f"),
        infer(nothing, mutates_args="unknown"),
        *(first_word(error(infer, f, mutates_args=())) for f in (no_return, bad_type, lambda x: x)),
        first_word(error(infer, nothing, mutates_args=("z",))),
    ]


def case_custom_op(torch):
    ns, tensor = namespace(), torch.Tensor

    @torch.library.custom_op(f"{ns}::scale", mutates_args=())
    def scale(x: tensor, a: float = 2.0) -> tensor:
        return x * a

    op, x = getattr(torch.ops, ns).scale, torch.ones(2, requires_grad=True)
    rows = [scale(x.detach()), op(x.detach(), a=3.0), op.default(x.detach(), 4.0), op.overloads(), scale(x).requires_grad]
    rows.append(error(scale(x).sum().backward).replace(ns, "ns"))
    torch.library.register_autograd(
        f"{ns}::scale", lambda ctx, g: (g * ctx.a * 10, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "a", inputs[1])
    )
    scale(x, 3.0).sum().backward()
    scale.register_autocast("cpu", torch.bfloat16)
    with torch.autocast("cpu"):
        rows.append(str(scale(torch.ones(1)).dtype))
    rows += [x.grad, *(first_word(error(scale, *args, **named)) for args, named in (((), {}), ((3,), {}), ((x,), {"b": 1})))]
    rows += [first_word(error(getattr, op, "other")), first_word(error(getattr, getattr(torch.ops, ns), "none"))]
    return rows


def case_lists_and_keywords(torch):
    ns, tensor = namespace(), torch.Tensor

    @torch.library.custom_op(f"{ns}::products", mutates_args=())
    def products(xs: list[tensor], w: tensor, *, k: int = 2) -> list[tensor]:
        return [x * w * k for x in xs]

    def save(ctx, inputs, output, keyword_only_inputs):
        ctx.save_for_backward(*inputs[0], inputs[1])
        ctx.k = keyword_only_inputs["k"]

    def gradients(ctx, gs):
        *xs, w = ctx.saved_tensors
        return [g * w * ctx.k for g in gs], sum((g * x * ctx.k).sum() for g, x in zip(gs, xs))

    products.register_autograd(gradients, setup_context=save)
    p, q = (torch.full((2,), v, requires_grad=True) for v in (1.0, 3.0))
    w = torch.tensor(5.0, requires_grad=True)
    result = products([p, q], w, k=3)
    sum((r * r).sum() for r in result).backward()
    return [isinstance(result, list), result, p.grad, q.grad, w.grad]


def case_mutation_and_aliases(torch):
    ns, tensor = namespace(), torch.Tensor

    @torch.library.custom_op(f"{ns}::add", mutates_args=("x",))
    def add(x: tensor, y: tensor) -> None:
        x.add_(y)

    @torch.library.custom_op(f"{ns}::same", mutates_args=())
    def same(x: tensor) -> tensor:
        return x

    a = torch.zeros(2)
    none = add(a, torch.ones(2))
    return [none, a, first_word(error(same, a)), first_word(error(torch.library.custom_op("name", mutates_args=()), lambda x: x))]


def case_libraries(torch):
    ns = namespace()
    library = torch.library.Library(ns, "DEF")
    rows = [library.define("inc(Tensor x, int n=1) -> Tensor"), library.define("inc.two(Tensor x, Tensor n) -> Tensor")]
    op, x = getattr(torch.ops, ns).inc, torch.ones(1, requires_grad=True)
    rows += [first_word(error(op, x)), first_word(error(library.define, "inc(Tensor x) -> Tensor"))]
    library.impl("inc", lambda x, n=1: x + n, "CompositeImplicitAutograd")
    torch.library.impl(f"{ns}::inc.two", "cpu", lambda x, n: x * n)
    y = op(x, n=4)
    y.sum().backward()
    rows += [y, x.grad, op(torch.ones(1), torch.tensor(7.0)), sorted(op.overloads())]

    class Hundredfold(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch._C._AutoDispatchBelowAutograd():
                return getattr(torch.ops, ns).double(x)

        @staticmethod
        def backward(ctx, g):
            return g * 100

    library.define("double(Tensor x) -> Tensor")
    library.impl("double", lambda x: x * 2, "CPU")
    library.impl("double", Hundredfold.apply, "Autograd")
    z = torch.ones(1, requires_grad=True)
    getattr(torch.ops, ns).double(z).sum().backward()
    rows += [z.grad, error(torch.library.Library, "prim", "DEF"), error(torch.library.Library, ns, "OTHER")]
    rows += [first_word(error(library.impl, "inc", 3, "CPU")), first_word(error(torch.ops.load_library, "/none.so"))]
    return rows


def case_overloads_read_iterators_once(torch):
    ns = namespace()
    library = torch.library.Library(ns, "FRAGMENT")
    rows, numbers = [], []

    class Number:
        def __index__(self):
            numbers.append(3)
            return 3

    def interrupted():
        yield 1
        raise ValueError("interrupted")

    declarations = ("g(int[] a) -> ()", "g.two(int[] a, int b) -> ()", "i(int[] a, int b) -> ()", "i.one(int[] a) -> ()",
                    "h(int a) -> ()", "h.other(float a) -> ()", "s(Scalar a) -> ()", "s.text(str a) -> ()")  # fmt: skip
    for declaration in declarations:
        library.define(declaration)
        library.impl(declaration.partition("(")[0], lambda *args: rows.append(list(args)), "CompositeExplicitAutograd")
    ops = getattr(torch.ops, ns)
    for function, args in ((ops.g, ((i for i in (1, 2)),)), (ops.g, (map(int, "12"), 3)), (ops.i, ((i for i in (1, 2)),)),
                           (ops.g, ([Number()],)), (ops.h, (2**70,)), (ops.s, ("a",))):  # fmt: skip
        function(*args)
    for function, args in ((ops.s, (2**70,)), (ops.g, ([2**70],)), (ops.g, ("a",)), (ops.g, (interrupted(),)),
                           (ops.g.default, (interrupted(),))):  # fmt: skip
        text = error(function, *args)
        rows.append([first_word(text), "Overloaded torch operator invoked from Python failed to match any schema:\n" in text])
    return [*rows, numbers]
