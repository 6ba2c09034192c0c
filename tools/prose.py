# SPDX-License-Identifier: BSD-3-Clause
"""Reports phrases that make English hard to read, as CONTRIBUTING.md lists them.

    python tools/prose.py               # all prose, as tox -e lint does
    python tools/prose.py --pages       # only the pages
    python tools/prose.py docs tools    # only these files and folders
    python tools/prose.py --count       # only the number of hits of each pattern

The exit status is 1 if there is a hit. Code fences and inline code are skipped. A line
that quotes a phrase on purpose has the comment ``prose: ok``.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from workspace import ROOT


class Rule(NamedTuple):
    """A pattern of hard English.

    Attributes:
        name: What CONTRIBUTING.md calls it.
        advice: What a reader expects in its place.
        pattern: The phrases.
    """

    name: str
    advice: str
    pattern: re.Pattern[str]


def _rule(name: str, advice: str, *phrases: str) -> Rule:
    return Rule(name, advice, re.compile("|".join(phrases)))


# The beginning of a paragraph, a list item, a table cell, a sentence or a clause.
_START = r"(?:^\s*(?:(?:[-*>]|\d+\.) +)?|(?<=[.:;!?] )|(?<=, and )|(?<=\| ))"
_THINGS = r"(?:memory|tensors?|storage|thread|bits|numbers)"
_PLACES = r"(?:device|host|CPU|stream|program|kernel|caller|library|process|package)"
_TALKS = r"(?:[Ss]ays?|[Tt]ells?|[Kk]nows?|[Aa]sks?|said|told|knew|asked)"
_WHAT = r"(?:what|which|how|whether|why|of|nothing|where|when|who|it|them|about)"
_TOOLS = r"(?:error|function|kernel|message|page|schema|setting|table|text|tool)"
_BE = r"(?:is|are|was|were)"

RULES = (
    _rule(
        "headless clause",
        "name the noun",
        _START + r"(?:What|Who) (?![^.?]*\?)",
        r"\bthat which\b",
        r"\b(?<!without )(?<!of )what is (?:left|there|missing|not)\b",
        rf"\b(?:to|for|behind) what (?:{_BE}|an?)\b",
        r"\bbecause to \w+\b",
    ),
    _rule(
        "noun of noun",
        'write a compound, or "its own ...": "device memory"',
        rf"\b{_THINGS} of (?:the|a) {_PLACES}\b(?!')",
        r"\bof (?:theirs|ours|its own|their own)\b",
    ),
    _rule(
        "pronoun without noun",
        "repeat the noun",
        r"\b[Tt]hose (?:that|of|which|who|in|with|for|on|from|it|the|to)\b",
        r"\b(?:of|for|with|than|in|by) one that\b",
        r"\bthe one or the other\b|\bnone that\b|\bone who\b|\blike this one\b",
        r"\b[Ww]hether that (?:is|was|were)\b",
    ),
    _rule(
        "causative",
        "write: makes, allows, passes, assigns, allocates",
        r"\b[Ll]ets? (?:the|a|it|them|its|\w+s) (?:\w+ )?(?:have|be|go|run|know|see)\b",
        r"\b[Gg]ives? (?:it|them|the \w+) (?:other|another|its|their)\b",
        r"\b[Gg]ets? (?:its|their) \w+ by\b",
    ),
    _rule(
        "negation by no",
        'write "is not a ...", or what happens instead',
        rf"\b(?<![Tt]here ){_BE} no (?!longer|more|later|less|earlier|fewer)\w+",
        r"\bnobody's\b|\bis silence\b",
    ),
    _rule(
        "software that talks",
        "write: reports, checks, lists, defines, calls",
        rf"\b{_TALKS} {_WHAT}\b",
        rf"\b{_TOOLS} {_TALKS}\b",
    ),
    _rule(
        "avoided verb",
        "write the verb: continue, block, proceed, must",
        r"\b[Gg]o(?:es)? on\b(?! to)|\b(?:[Ww]ent|[Gg]oing) on\b|\bcomes? to it\b",
        rf"\b{_BE} (?:worth|to be|as good as)\b",
    ),
    _rule(
        "vague amount",
        "name the amount, or the property",
        r"\b[Ss]o many\b|\b[Ss]uch(?! as\b| an? )\b",
        r"\banother one's\b|\b(?:of|with) other (?:sizes|shapes)\b",
    ),
    _rule(
        "wrong particle",
        "write: next to, except, forever, immediately, while, with",
        r"\b[Bb]eside\b|\bby which\b|\bfor (?:ever|good)\b|\bbut (?:for|those)\b",
        r"\bmeanwhile\b|\b[Aa]t once\b|\bfound by (?:its|their)\b",
        r"\botherwise (?:on [\w ]+ )?than\b",
    ),
)

SUFFIXES = (".md", ".py", ".pyi", ".cpp", ".h", ".def", ".c", ".inc", ".toml")
PAGES = ("*.md",)
EVERYTHING = ("*.md", "docs", "packages", "examples", "benchmarks", "tools", "tests")
# They quote the phrases.
SKIPPED = ("tools/prose.py", "tests/guide/tools/test_prose.py")

_FENCE = re.compile(
    r"^[ \t]*(`{3,}|~{3,}).*?^[ \t]*\1`*[ \t]*$", re.DOTALL | re.MULTILINE
)
# A comment, a string or a character of C++.
CPP = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>"(?:[^"\\\n]|\\.)*")|'(?:[^'\\\n]|\\.)+'""",
    re.DOTALL,
)


class Text(NamedTuple):
    """A piece of prose and the line of the file where it begins."""

    line: int
    text: str


def _markdown(source: str) -> Iterator[Text]:
    def blank(match: re.Match[str]) -> str:
        return "\n" * match.group().count("\n")

    source = _FENCE.sub(blank, source)
    source = re.sub(r"<!--.*?-->", blank, source, flags=re.DOTALL)
    source = re.sub(r"\]\([^)]*\)", "]", source)
    source = re.sub(r"`[^`]*`", lambda match: "`code`" + blank(match), source)
    line = 1
    for paragraph in re.split(r"(\n(?=\s*(?:\n|[-*|#>]|\d+\.)))", source):
        yield Text(line, paragraph)
        line += paragraph.count("\n")


def _python(source: str) -> Iterator[Text]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            line = node.lineno
            for paragraph in re.split(
                r"(\n(?:\s*\n)?)(?=\s*(?:\n|[-*]|\w+:))", node.value
            ):
                if paragraph.count(" ") >= 3:
                    yield Text(line, paragraph)
                line += paragraph.count("\n")
    comments = (
        Text(token.start[0], token.string.lstrip("#: "))
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    )
    yield from _joined(comments)


def _cpp(source: str) -> Iterator[Text]:
    comments, strings = [], []
    for match in CPP.finditer(source):
        line = source.count("\n", 0, match.start()) + 1
        if match["comment"]:
            text = re.sub(
                r"^\s*(?://[/!<]*|/\*+|\*+/?) ?",
                "",
                match["comment"],
                flags=re.MULTILINE,
            )
            comments.append(Text(line, text))
        elif match["string"]:
            strings.append(Text(line, match["string"].strip('"')))
    yield from _joined(iter(comments))
    yield from (text for text in _joined(iter(strings)) if text.text.count(" ") >= 3)


def _toml(source: str) -> Iterator[Text]:
    for number, line in enumerate(source.splitlines(), 1):
        yield Text(number, line.lstrip("# "))


def _joined(texts: Iterator[Text]) -> Iterator[Text]:
    """Joins texts of consecutive lines, so that a phrase is found across their ends."""
    whole: Text | None = None
    for text in texts:
        if whole and text.line == whole.line + whole.text.count("\n") + 1 and text.text:
            whole = Text(whole.line, whole.text + "\n" + text.text)
            continue
        if whole:
            yield whole
        whole = text
    if whole:
        yield whole


def texts_of(path: Path) -> Iterator[Text]:
    """Yields the prose of a file: paragraphs, comments, docstrings and error texts."""
    source = path.read_text()
    if path.suffix == ".md":
        return _markdown(source)
    if path.suffix in (".py", ".pyi"):
        return _python(source)
    if path.suffix == ".toml":
        return _toml(source)
    return _cpp(source)


class Hit(NamedTuple):
    """A phrase in a file, and the rule against it."""

    path: Path
    line: int
    rule: Rule
    phrase: str


def hits_in(path: Path) -> Iterator[Hit]:
    """Yields the phrases of a file that a rule describes."""
    lines = path.read_text().splitlines()
    for line, text in texts_of(path):
        flat = re.sub(r"\s", " ", text)
        for rule in RULES:
            for match in rule.pattern.finditer(flat):
                start = match.end() - len(match.group().lstrip())
                number = line + text.count("\n", 0, start)
                if "prose: ok" not in lines[min(number, len(lines)) - 1]:
                    end = flat.find(" ", match.end() + 12)
                    phrase = flat[start : end if end > 0 else None].strip()
                    yield Hit(path, number, rule, phrase)


def files(places: Sequence[str]) -> list[Path]:
    """Returns the files with prose in these places, tracked or not, but not ignored."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "--", *places]
    names = subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return [
        ROOT / name
        for name in sorted(set(names.splitlines()))
        if name.endswith(SUFFIXES) and name not in SKIPPED and (ROOT / name).is_file()
    ]


def main() -> int:
    """Prints the hits, or their number for each rule."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "places", nargs="*", default=EVERYTHING, help="files and folders"
    )
    parser.add_argument("--pages", action="store_true", help="check only the pages")
    parser.add_argument("--count", action="store_true", help="print only a table")
    arguments = parser.parse_args()
    places = PAGES if arguments.pages else arguments.places
    hits = [hit for path in files(places) for hit in hits_in(path)]
    if arguments.count:
        counts = Counter(hit.rule.name for hit in hits)
        for name in dict.fromkeys(rule.name for rule in RULES):
            print(f"{counts[name]:6} {name}")
        print(f"{len(hits):6} in all")
    else:
        for hit in hits:
            place = f"{hit.path.relative_to(ROOT)}:{hit.line}"
            print(f"{place}: {hit.rule.name}: {hit.phrase!r}: {hit.rule.advice}")
    return 1 if hits else 0


if __name__ == "__main__":
    sys.exit(main())
