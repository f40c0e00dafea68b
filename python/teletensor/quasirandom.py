"""torch.quasirandom: Sobol sequences. They are computed in the client, with the direction numbers that SciPy contains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import _C
from ._C import Tensor
from ._generator import Generator

__all__ = ["SobolEngine"]


def _direction_numbers(dimension: int, bits: int):
    """The direction numbers of Joe and Kuo (2008), scaled to `bits` bits: an array of (dimension, bits) int64."""
    import numpy as np

    try:
        import scipy.stats
    except ImportError:
        raise ImportError("[SobolEngine] requires SciPy, which contains the direction numbers") from None
    with np.load(Path(scipy.stats.__file__).parent / "_sobol_direction_numbers.npz") as table:
        polynomials, first = table["poly"][:dimension].tolist(), table["vinit"][:dimension].astype(np.int64)
    numbers = np.ones((dimension, bits), dtype=np.int64)
    for d in range(1, dimension):
        polynomial = int(polynomials[d])
        degree = polynomial.bit_length() - 1
        row = [int(v) for v in first[d, :degree]]
        for j in range(degree, bits):
            value = row[j - degree]
            for k in range(degree):
                if polynomial >> (degree - 1 - k) & 1:
                    value ^= row[j - k - 1] << (k + 1)
            row.append(value)
        numbers[d] = row[:bits]
    return numbers << np.arange(bits - 1, -1, -1, dtype=np.int64)


class SobolEngine:
    """A Sobol sequence in the unit cube, optionally scrambled.

    Args:
        dimension: from 1 to 21201.
        scramble: whether the points are shifted and scrambled at random.
        seed: of the scrambling; by default the session's generator.
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self._directions = _direction_numbers(dimension, self.MAXBIT)
        self._shift = self._directions[:, 0] * 0
        if scramble:
            self._scramble()
        self.reset()

    @property
    def shift(self) -> Tensor:
        """The first point, as integers of MAXBIT bits."""
        return _C.tensor(self._shift)

    @property
    def sobolstate(self) -> Tensor:
        """The direction numbers."""
        return _C.tensor(self._directions)

    def _scramble(self) -> None:
        """Multiplies the direction numbers by random lower triangular matrices of bits, and draws a shift."""
        import numpy as np

        generator = None
        if self.seed is not None:
            generator = Generator().manual_seed(self.seed)
        draw = {"generator": generator} if generator is not None else {}
        from . import randint

        n, bits = self.dimension, self.MAXBIT
        weights = np.int64(1) << np.arange(bits, dtype=np.int64)
        self._shift = randint(2, (n, bits), **draw).numpy() @ weights
        matrices = np.tril(randint(2, (n, bits, bits), **draw).numpy(), -1) + np.eye(bits, dtype=np.int64)
        high_first = weights[::-1]
        digits = (self._directions[:, :, None] & high_first) != 0  # (n, direction, bit), the highest bit first
        scrambled = np.einsum("dpk,djk->djp", matrices, digits.astype(np.int64)) % 2
        self._directions = scrambled @ high_first

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next `n` points, of size (n, dimension)."""
        import numpy as np

        dtype = _C.default_dtype() if dtype is None else dtype
        points = np.empty((n, self.dimension), dtype=np.int64)
        for i in range(n):
            if self.num_generated:
                lowest_zero = (~(self.num_generated - 1) & self.num_generated).bit_length() - 1
                if lowest_zero >= self.MAXBIT:
                    raise ValueError(f"[SobolEngine] expected at most 2^{self.MAXBIT} points")
                self._quasi = self._quasi ^ self._directions[:, lowest_zero]
            points[i] = self._quasi
            self.num_generated += 1
        result = _C.tensor(points * 2.0**-self.MAXBIT, dtype=dtype)
        if out is None:
            return result
        out.resize_(list(result.shape)).copy_(result)
        return out

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next 2^m points. All points so far must be a power of 2 afterwards."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={self.num_generated}+2**{m}={total}. "
                "If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Returns to the first point."""
        self._quasi, self.num_generated = self._shift.copy(), 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skips `n` points."""
        self.num_generated += n
        last = max(self.num_generated - 1, 0)
        self._quasi, gray = self._shift.copy(), last ^ last >> 1
        for bit in range(gray.bit_length()):
            if gray >> bit & 1:
                self._quasi ^= self._directions[:, bit]
        return self

    def __repr__(self) -> str:
        text = [f"dimension={self.dimension}"]
        if self.scramble:
            text.append("scramble=True")
        if self.seed is not None:
            text.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(text)})"
