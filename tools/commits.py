# SPDX-License-Identifier: BSD-3-Clause
"""Checks commit messages: a short subject, and a body that gives the reason.

    python tools/commits.py                    # commits that origin does not have
    python tools/commits.py BASE               # commits of BASE..HEAD
    python tools/commits.py --new              # commits after the rules began
    python tools/commits.py --message FILE     # one message, as git's hook commit-msg

A subject has at most 72 columns and a body at most 100. Merge commits need no body.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from workspace import ROOT

SUBJECT = 72
BODY = 100
# The last commit before the rules began.
START = "beff4d36a4afbf7fcaa7546aac8ab02227ddd5db"

# Git ends the message here in the file of `git commit --verbose`.
_SCISSORS = re.compile(r"^# -+ >8 -+$.*", re.MULTILINE | re.DOTALL)
_TRAILER = re.compile(r"[A-Z][\w-]+: \S")


def check(message: str) -> Iterator[str]:
    """Yields a sentence for each rule that a message breaks.

    Args:
        message: Subject and body, without comments.
    """
    subject, *rest = message.strip("\n").splitlines() or [""]
    if not subject.strip():
        yield "the subject is missing"
        return
    if len(subject) > SUBJECT:
        yield f"the subject has {len(subject)} columns; at most {SUBJECT} are allowed"
    if rest and rest[0].strip():
        yield "the line after the subject is not blank"
    # Tools generate these subjects.
    generated = subject.startswith(("Merge ", "fixup! ", "squash! ", "Revert "))
    body = [line for line in rest if line.strip()]
    if not generated and all(map(_TRAILER.match, body)):
        yield "the body is missing: write the reason for the change"
    for number, line in enumerate(rest, 2):
        if len(line) > BODY:
            yield f"line {number} has {len(line)} columns; at most {BODY} are allowed"


def without_comments(text: str) -> str:
    """Returns the text that git keeps of the file of a message."""
    lines = _SCISSORS.sub("", text).splitlines()
    return "\n".join(line for line in lines if not line.startswith("#")).strip("\n")


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["git", *arguments]
    return subprocess.run(
        command, cwd=folder, check=False, capture_output=True, text=True
    )


def commits(base: str, folder: Path) -> list[tuple[str, str, bool]]:
    """Lists the commits of ``base..HEAD``: short hash, message, whether it is a merge.

    Raises:
        ValueError: If git does not accept the range.
    """
    listed = _git(folder, "log", "-z", "--format=%h %p%n%B", f"{base}..HEAD")
    if listed.returncode:
        raise ValueError(listed.stderr.strip())
    found = []
    for entry in filter(None, listed.stdout.split("\0")):
        head, _, message = entry.partition("\n")
        commit, *parents = head.split()
        found.append((commit, message, len(parents) > 1))
    return found


def check_range(base: str, folder: Path) -> Iterator[str]:
    """Yields a line for each rule that a commit of ``base..HEAD`` breaks."""
    for commit, message, is_merge in commits(base, folder):
        for problem in check(message):
            if not (is_merge and "body is missing" in problem):
                subject = message.strip("\n").partition("\n")[0]
                yield f"{commit} {subject[:SUBJECT]}: {problem}"


def upstream(folder: Path) -> str | None:
    """Returns the branch that origin has, or None."""
    for name in ("@{upstream}", "origin/HEAD", "origin/main"):
        if not _git(folder, "rev-parse", "--verify", "--quiet", name).returncode:
            return name
    return None


def main(arguments: list[str] | None = None, folder: Path = ROOT) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    given = parser.add_mutually_exclusive_group()
    given.add_argument("base", nargs="?", help="check the commits of BASE..HEAD")
    given.add_argument("--new", action="store_true", help=f"check {START[:7]}..HEAD")
    given.add_argument("--message", type=Path, help="check the message in this file")
    options = parser.parse_args(arguments)
    if options.message:
        text = options.message.read_text(encoding="utf-8")
        problems = [f"commit message: {each}" for each in check(without_comments(text))]
    else:
        base = START if options.new else options.base or upstream(folder)
        if base is None:
            print("no commits were checked: there is no branch of origin; give a base")
            return 0
        if options.new:
            reached = _git(folder, "merge-base", "--is-ancestor", base, "HEAD")
            if reached.returncode:
                print(
                    f"no commits were checked: {base[:7]} is not in this history,"
                    " as in a shallow clone"
                )
                return 0
        try:
            problems = list(check_range(base, folder))
        except ValueError as error:
            parser.error(str(error))
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
