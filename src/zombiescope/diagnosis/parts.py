"""A cause, or a part of what happened: a pattern that explains a fifth of the hog's kernel time is right about a fifth.

A program that asks for many things does some of each, and one of them is often a pattern's. So a pattern is compared
with the system calls (and faults) that it has next to nothing to do with. Where one of those alone has more of the
kernel time than all that the pattern accounts for, what happened is not known, and the pattern stands behind that, at
0.5 or less, and says so.

Only where the hog's own stacks are the pattern's: what it does to a whole core, or through kernel threads, is no share
of its own time.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.kernel_profile import KernelProfile
from zombiescope.diagnosis.pattern import Measurement, Pattern
from zombiescope.diagnosis.thresholds import PARTIAL_CAUSE_SHARE
from zombiescope.store.columns import Mask


class Larger(NamedTuple):
    """What has more of the hog's kernel time than a pattern, and how much the two have."""

    what: str
    share: float
    pattern_share: float

    def measurement(self) -> Measurement:
        text = (
            f"only part of the explanation: {self.what} has {self.share * 100:.0f}% of its kernel time, this pattern "
            f"{self.pattern_share * 100:.0f}%"
        )
        return Measurement(text, round(self.pattern_share, 4), "ratio", "samples", "nothing")


def larger_than(case: Case, pattern: Pattern) -> Larger | None:
    """In the hog's own time, and in that of the hog with all that was started with it: children that do one thing
    may have a parent that does nothing but make them."""
    if pattern.scope != "hog" or not pattern.signatures:
        return None
    own = _larger(case, pattern, case.profile)
    if own is None or _larger(case, pattern, case.facts.samples.profile(case.family)) is None:
        return None
    return own


def _larger(case: Case, pattern: Pattern, profile: KernelProfile) -> Larger | None:
    mine = _accounted(case, pattern, profile)
    own = profile.share(int(profile.counts[mine].sum()))
    for name, count in _asked_for(profile, mine).most_common(1):
        if (share := profile.share(count)) > own:
            return Larger(name, share, own)
    return None


def _accounted(case: Case, pattern: Pattern, profile: KernelProfile) -> Mask:
    """Which stacks are a pattern's doing."""
    rows = profile.known.with_function(pattern.also)
    for one in pattern.signatures:
        if one.applies(case.facts.kernel, profile):
            rows = rows | (one.of(profile).counts > 0)
    return rows


def _asked_for(profile: KernelProfile, mine: Mask) -> Counter[str]:
    """Samples by what the kernel was entered for, of what a pattern has nothing to do with."""
    everything, without = profile.calls(), profile.calls(~mine)
    return Counter(
        {name: count for name, count in everything.items() if count - without[name] < PARTIAL_CAUSE_SHARE * count}
    )
