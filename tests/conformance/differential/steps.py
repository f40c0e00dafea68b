"""One comparison of a call in both packages, and the outcomes it may have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..op_db.checks import kind_difference
from ..op_db.convert import Unconvertible, leaves
from ..op_db.forms import MissingOperator

# Kinds of outcomes: as in PyTorch, different, nothing to compare, the name is absent here.
KINDS = ("passed", "failed", "skipped", "missing")
Outcome = tuple[str, str]  # kind and text; the text of a difference says how the results differ and for which call


@dataclass(frozen=True)
class Step:
    """A call to compare."""

    path: str  # the function's name, such as `torch.add`
    argument: str  # what differs from the base call: "by keyword", "by position", or "name=value"
    run: Callable[[], Iterator[Outcome]]
    overload: str = ""  # the declaration that the call matches, such as `torch.add#0`

    def outcomes(self) -> Iterator[Outcome]:
        """Runs the step. A fault of the comparison itself is a difference, too."""
        try:
            yield from self.run()
        except Unconvertible as e:
            yield "skipped", str(e)
        except MissingOperator as e:
            yield "missing", str(e)
        except Exception as e:  # noqa: BLE001 - the next call must run
            yield "failed", f"the comparison failed: {type(e).__name__}: {e}"


def outcome(call: Callable[[], Any], tensor: type | None = None) -> tuple[Any, Exception | None]:
    """The result, or the exception. `tensor`: wait for the values of tensors of this type; some errors are raised then."""
    try:
        result = call()
        if tensor is not None:
            for leaf in leaves(result):
                if isinstance(leaf, tensor) and leaf.device.type != "meta":
                    values = leaf.detach() if str(leaf.layout) == "torch.strided" else leaf.detach().to_dense()
                    values.reshape(-1)[:1].tolist()
        return result, None
    except Exception as e:  # noqa: BLE001 - types of exceptions are compared
        return None, e


def refused_by_both(mine: Exception | None, other: Exception | None) -> str | None:
    """How two outcomes of which one is an exception differ; None if neither is one."""
    if mine is not None and type(mine).__name__ == type(other).__name__:
        return ""  # each package's own class
    return None if mine is None and other is None else kind_difference(mine, other)
