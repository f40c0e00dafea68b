"""MT19937: the generator of PyTorch's CPU, for choices that the client makes, such as the order of samples.

Source: Matsumoto and Nishimura, "Mersenne Twister: a 623-dimensionally equidistributed uniform pseudo-random number
generator" (1998). The methods consume 32-bit words in the order in which PyTorch's functions do, so that equal seeds
give equal orders.
"""

from __future__ import annotations

import bisect
import itertools
import math
import random
from array import array
from collections.abc import Sequence

_WORD = 0xFFFFFFFF
_CHUNK = 1 << 16  # words that are drawn at once
_MAX_SKIP = 1 << 27


class MT19937:
    """A stream of random numbers. ``position`` is the number of 32-bit words drawn since the seed."""

    def __init__(self, seed: int, position: int = 0):
        self._seed, self.position = seed, position
        self._random: random.Random | None = None  # made at the first draw

    def _source(self) -> random.Random:
        """The generator at the position."""
        if self._random is not None:
            return self._random
        seed, skipped = self._seed, self.position
        if skipped > _MAX_SKIP:  # too many words to discard: a separate stream for each such state
            seed, skipped = seed ^ skipped * 0x9E3779B1, 0
        state = [seed & _WORD]
        for i in range(1, 624):
            state.append((1812433253 * (state[-1] ^ state[-1] >> 30) + i) & _WORD)
        self._random = random.Random()
        self._random.setstate((3, (*state, 624), None))
        self._discard(skipped)
        return self._random

    def _discard(self, count: int) -> None:
        while count > 0:
            self._source().getrandbits(32 * min(count, _CHUNK))
            count -= _CHUNK

    def skip(self, count: int) -> None:
        """Discards `count` words."""
        self._discard(count)
        self.position += count

    def words(self, count: int) -> array:
        """The next `count` words."""
        source, drawn = self._source(), array("I")
        self.position += count
        while count > 0:
            size = min(count, _CHUNK)
            drawn.frombytes(source.getrandbits(32 * size).to_bytes(4 * size, "little"))
            count -= size
        return drawn

    def random64(self) -> int:
        """64 bits, as a non-negative number."""
        high, low = self.words(2)
        return high << 32 | low

    def seed(self) -> int:
        """63 bits: ``torch.empty((), dtype=torch.int64).random_()``."""
        return self.random64() & (1 << 63) - 1

    def uniform(self, count: int) -> list[float]:
        """Numbers in [0, 1) with 53 random bits."""
        drawn = self.words(2 * count)
        return [((drawn[i] << 32 | drawn[i + 1]) & (1 << 53) - 1) * 2.0**-53 for i in range(0, 2 * count, 2)]

    def randint(self, high: int, count: int) -> list[int]:
        """Numbers in [0, high): ``torch.randint``."""
        if high > _WORD:
            return [self.random64() % high for _ in range(count)]
        return [word % high for word in self.words(count)]

    def randperm(self, n: int) -> list[int]:
        """A permutation of 0 ... n - 1: ``torch.randperm``."""
        order = list(range(n))
        for i, word in enumerate(self.words(max(0, n - 1))):
            other = i + word % (n - i)
            order[i], order[other] = order[other], order[i]
        return order

    def skip_randperm(self, n: int) -> None:
        """Discards the words of a permutation."""
        self.skip(max(0, n - 1))

    def multinomial(self, weights: Sequence[float], count: int, replacement: bool) -> list[int]:
        """Indices drawn with probabilities proportional to the weights: ``torch.multinomial`` in float64.

        Raises:
            RuntimeError: a weight is negative or NaN, all are 0, or there are fewer weights than draws without replacement.
        """
        if not replacement and count > len(weights):
            raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
        if not all(weight >= 0 for weight in weights):
            raise RuntimeError("invalid multinomial distribution (encountering probability entry < 0)")
        if math.inf in weights:
            raise RuntimeError("invalid multinomial distribution (encountering probability entry = infinity or NaN)")
        sums = list(itertools.accumulate(weights))
        if not sums or sums[-1] <= 0:
            raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
        if replacement and count > 1:
            shares = [part / sums[-1] for part in sums]
            return [bisect.bisect_left(shares, number) for number in self.uniform(count)]
        # Selects the largest quotients of a weight and an exponential random number: Efraimidis and Spirakis, "Weighted
        # random sampling with a reservoir" (2006).
        draws = [-math.log1p(-number) for number in self.uniform(len(weights))]
        keys = [weight / draw if draw else math.inf for weight, draw in zip(weights, draws)]
        return sorted(range(len(keys)), key=keys.__getitem__, reverse=True)[:count]
