"""Exact tests, and what many of them at once are worth.

Fisher's test, one-sided: of N nodes K are affected; a group of n has k of them. The p-value is the chance that a group
of n nodes drawn at random has k or more (the upper tail of the hypergeometric distribution). Nothing is approximated:
fleets are often small, and sick nodes few.

Many labels are tried, so p-values are corrected by Holm's method: the chance that anything at all is reported where
nothing is the matter stays below ALPHA, whatever the labels have to do with each other (they have a lot). Benjamini
and Hochberg would find a little more, at the price that a twentieth of what is reported is chance; here somebody is
woken up by the first line. Groups so small that they could not become significant even if every node of them were
affected do not count as tried (Tarone 1990): labels that are different on every node cost nothing.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

ALPHA = 0.002
STEPS = 100
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Fisher:
    """The test for groups of one fleet: its number of nodes, and of affected ones."""

    def __init__(self, nodes: int, affected: int) -> None:
        self.nodes, self.affected = nodes, affected
        self._log_factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, nodes + 1)))])
        self._known: dict[tuple[int, int], float] = {}

    def p_value(self, size: int, hits: int) -> float:
        """That a group of `size` nodes has `hits` or more affected ones by chance."""
        return math.exp(self.log_p(size, hits))

    def log_p(self, size: int, hits: int) -> float:
        """Its logarithm: in a large fleet two p-values may both be too small for a number, and yet one is smaller."""
        if (size, hits) not in self._known:
            self._known[size, hits] = self._tail(size, hits)
        return self._known[size, hits]

    def _tail(self, size: int, hits: int) -> float:
        least, most = max(0, size + self.affected - self.nodes), min(size, self.affected)
        if hits <= least:
            return 0.0
        if hits > most:
            return -math.inf
        k = np.arange(hits, most + 1)
        logs = (
            self._log_choose(self.affected, k)
            + self._log_choose(self.nodes - self.affected, size - k)
            - self._log_choose(self.nodes, np.array([size]))
        )
        top = float(logs.max())
        return min(0.0, top + math.log(float(np.exp(logs - top).sum())))

    def least_p(self, size: int) -> float:
        """The smallest p-value that a group of this size can have at all."""
        return self.p_value(size, min(size, self.affected))

    def log_p_few(self, size: int, hits: int) -> float:
        """The logarithm of the chance that such a group has `hits` or fewer: the other nodes have the rest or more."""
        return self.log_p(self.nodes - size, self.affected - hits)

    def pmf(self, size: int) -> tuple[int, Floats]:
        """The fewest affected nodes that a group of this size can have, and the chance of each number from there on."""
        least, most = max(0, size + self.affected - self.nodes), min(size, self.affected)
        k = np.arange(least, most + 1)
        logs = (
            self._log_choose(self.affected, k)
            + self._log_choose(self.nodes - self.affected, size - k)
            - self._log_choose(self.nodes, np.array([size]))
        )
        return least, np.exp(logs)

    def _log_choose(self, n: int, k: Ints) -> Floats:
        table = self._log_factorials
        chosen: Floats = table[n] - table[k] - table[n - k]
        return chosen


def binomial_tail(trials: int, hits: int, chance: float) -> float:
    """That of so many trials `hits` or more succeed."""
    if hits <= 0:
        return 1.0
    if chance <= 0 or hits > trials:
        return 0.0
    if chance >= 1:
        return 1.0
    k = np.arange(hits, trials + 1)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, trials + 1)))])
    logs = factorials[trials] - factorials[k] - factorials[trials - k]
    logs = logs + k * math.log(chance) + (trials - k) * math.log1p(-chance)
    top = float(logs.max())
    return min(1.0, math.exp(top) * float(np.exp(logs - top).sum()))


Stratum = tuple[int, int, int, int]
"""Nodes, affected ones, nodes of the group, affected ones of the group."""


def stratified_p(strata: Sequence[Stratum], *, few: bool = False) -> float:
    """That a group has so many affected nodes (`few`: so few) by chance, compared inside each stratum only."""
    chances, least, hits = np.ones(1), 0, 0
    for nodes, affected, size, found in strata:
        first, inside = Fisher(nodes, affected).pmf(size)
        chances, least, hits = np.convolve(chances, inside), least + first, hits + found
    at = hits - least
    tail = chances[: at + 1] if few else chances[at:]
    return min(1.0, float(tail.sum()))


MOST_SPLIT_NODES = 3000
_SMALLEST_LOG = -600.0
"""Below that a chance is no double any more."""


def best_split_log_p(nodes: int, affected: int, cuts: Sequence[int], best: float) -> float:
    """The logarithm of the chance that nodes in random order have a cut whose own p-value is `best` (a logarithm) or
    less, in either direction. `cuts`: how many nodes stand before each cut that is allowed.

    Exact, by following the number of affected nodes from the first node to the last and counting the ways that reach
    such a cut. In very large fleets, and for chances too small for a double, Bonferroni's bound takes its place.
    """
    bound = min(0.0, best + math.log(2 * max(1, len(cuts))))
    if bound == 0.0 or nodes > MOST_SPLIT_NODES or best < _SMALLEST_LOG:
        return bound
    fisher = Fisher(nodes, affected)
    limit = math.exp(best) * (1 + 1e-9)
    allowed = set(cuts)
    k = np.arange(affected + 1)
    ways, reached = np.zeros(affected + 1), 0.0
    ways[0] = 1.0
    for before in range(nodes):
        hit = ways * ((affected - k) / (nodes - before))
        ways -= hit
        ways[1:] += hit[:-1]
        if before + 1 in allowed:
            least, chances = fisher.pmf(before + 1)
            over = np.cumsum(chances[::-1])[::-1] <= limit
            under = np.cumsum(chances) <= limit
            extreme = least + np.flatnonzero(over | under)
            reached += float(ways[extreme].sum())
            ways[extreme] = 0.0
    return min(bound, math.log(reached)) if reached > 0 else bound


def countable(least: Sequence[float], alpha: float = ALPHA) -> int:
    """How many hypotheses count as tried, of those with these smallest possible p-values, sorted (Tarone): the smallest
    K such that at most K of them could reach alpha / K."""
    low, high = 1, max(1, len(least))
    while low < high:
        middle = (low + high) // 2
        if bisect_right(least, alpha / middle) <= middle:
            high = middle
        else:
            low = middle + 1
    return low


def corrected(
    p_values: Sequence[float], least: Sequence[float], tried: Sequence[float], alpha: float = ALPHA
) -> list[float]:
    """p-values corrected for all that was tried, in the order given. `least`: the smallest that each could have had;
    `tried`: the same of everything that was tried, also of what is not worth correcting.

    Step by step from the smallest (Holm), where at every step only those count that could still be found (Hommel and
    Krummenauer 1998). After STEPS steps the count stays as it is, which is on the safe side.
    """
    left = sorted(tried)
    result = [1.0] * len(p_values)
    running, count = 0.0, 1
    for step, at in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        if step < STEPS:
            count = countable(left, alpha)
            left.pop(max(0, bisect_right(left, least[at]) - 1))
        running = max(running, min(1.0, count * p_values[at]))
        result[at] = running if least[at] <= alpha / count else 1.0
    return result
