# SPDX-License-Identifier: BSD-3-Clause
"""Progress and regressions between two runs, or differences between two devices."""

from __future__ import annotations

from typing import Any

from .ranking import score, scores
from .summary import percent

SHOWN = 50


def compare(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, bool]:
    """Compares two reports by case name.

    Args:
        before: The first run.
        after: The second run.

    Returns:
        The text for a terminal, and whether a case has regressed.
    """
    old = {each["name"]: each for each in before["cases"]}
    new = {each["name"]: each for each in after["cases"]}
    both = [name for name in old if name in new]
    lines = [f"{'suite':16}{'before':>9}{'after':>9}"]
    one, other = scores(before, "suite"), scores(after, "suite")
    for name in dict.fromkeys([*one, *other]):
        shares = [percent(score(s[name])) if name in s else "-" for s in (one, other)]
        lines.append(f"{name:16}{shares[0]:>9}{shares[1]:>9}")
    changed = [n for n in both if old[n]["outcome"] != new[n]["outcome"]]
    fixed = [n for n in changed if new[n]["outcome"] == "passed"]
    broken = [n for n in changed if old[n]["outcome"] == "passed"]
    broken = [n for n in broken if new[n]["outcome"] != "skipped"]
    other_way = [n for n in changed if n not in fixed and n not in broken]
    for title, names in (
        ("fixed", fixed),
        ("broken", broken),
        ("changed", other_way),
        ("only before", [name for name in old if name not in new]),
        ("only after", [name for name in new if name not in old]),
    ):
        if not names:
            continue
        lines += ["", f"{title}: {len(names)}"]
        names.sort(key=lambda n: -(new.get(n) or old[n])["users"])
        for name in names[:SHOWN]:
            states = [c[name]["outcome"] for c in (old, new) if name in c]
            lines.append(f"  {name}: {' -> '.join(states)}")
            message = new.get(name, {}).get("message", "")
            if title in ("broken", "changed") and message:
                lines.append(f"      {message.splitlines()[0][:160]}")
        if len(names) > SHOWN:
            lines.append(f"  and {len(names) - SHOWN} more")
    if not changed and len(both) == len(old) == len(new):
        lines += ["", "all outcomes are the same"]
    return "\n".join(lines), bool(broken)
