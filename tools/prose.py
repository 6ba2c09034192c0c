# SPDX-License-Identifier: BSD-3-Clause
"""Reports phrases that make English hard to read, as CONTRIBUTING.md lists them.

python tools/prose.py               # everything: pages, comments, docstrings, texts in the code
python tools/prose.py docs tools    # these files and folders
python tools/prose.py --count       # only a table: the rules and the number of their hits

The exit status is 1 if there is a hit. A line that has to keep a phrase ends with the
comment ``prose: ok``.
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
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from workspace import ROOT


class Rule(NamedTuple):
    """A phrase to avoid, and the phrase that a reader expects in its place."""

    name: str
    pattern: re.Pattern[str]
    advice: str


def _rule(name: str, pattern: str, advice: str) -> Rule:
    return Rule(name, re.compile(pattern), advice)


# The beginning of a sentence or of a clause that could be one.
_START = r"(?:^|(?<=[.:;!?] )|(?<=, and )|(?<=\| ))"
_PLACES = r"(?:device|host|CPU|stream|program|kernel|caller|library|process|package)"

RULES = (
    _rule("headless clause", _START + r"(?:What|Who) (?![^.?]*\?)", "name the noun"),
    _rule("headless clause", r"\b(?:that which|(?<!without )(?<!of )what is (?:left|there|missing|not))\b", "name the noun"),
    _rule("noun of noun", r"\b(?:memory|tensors?|storage|thread|bits|numbers|name) of (?:the|a) " + _PLACES + r"\b(?!')", 'write a compound: "device memory"'),
    _rule("noun of noun", r"\bof (?:theirs|ours|its own|their own)\b", 'write "its own ..." or "a separate ..."'),
    _rule("pronoun without noun", r"\b[Tt]hose (?:that|of|which|who|in|with|for|on|from|it|the|to)\b", "repeat the noun"),
    _rule("pronoun without noun", r"\b(?:of|for|with|than|in|by) one that\b|\bthe one or the other\b|\bnone that\b", "repeat the noun"),
    _rule("causative", r"\b[Ll]ets? (?:the|a|it|them|its|\w+s) (?:\w+ )?(?:have|be|go|run|know|see)\b", "write: makes, allows, passes, assigns"),
    _rule("causative", r"\b[Gg]ives? (?:it|them|the \w+) (?:other|another|its|their)\b", "write: assigns, replaces, sets"),
    _rule("negation by no", r"\b(?<!there )(?<!There )(?:is|are|was|were) no (?!longer|more|later|less|earlier|fewer)\w+", 'write "is not a ..."'),
    _rule("software that talks", r"\b(?:[Ss]ays?|[Tt]ells?|[Kk]nows?|[Aa]sks?|said|told|knew|asked) (?:what|which|how|whether|why|of|nothing|where|when|who|it|them|about)\b", "write: reports, checks, lists, defines, calls"),
    _rule("avoided verb", r"\b(?:(?:is|are) worth|comes? to it|[Gg]o(?:es)? on\b(?! to)|[Ww]ent on|[Gg]oing on|(?:is|are|was|were) to be)\b", "write the verb: continue, block, proceed, must"),
    _rule("vague amount", r"\b[Ss]o many\b|\b[Ss]uch(?! as\b| an? )\b|\banother one's\b|\b(?:of|with) other (?:sizes|shapes)\b", "name the amount, or the property"),
    _rule("wrong particle", r"\b[Bb]eside\b|\bby which\b|\bfor (?:ever|good)\b|\bbut (?:for|those)\b|\bmeanwhile\b|\b[Aa]t once\b", "write: next to, alongside, except, forever, immediately, while"),
)  # fmt: skip

SUFFIXES = (".md", ".py", ".pyi", ".cpp", ".h", ".def", ".c", ".inc", ".toml")
EVERYTHING = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs", "packages", "examples", "benchmarks", "tools", "tests")  # fmt: skip
SKIPPED = ("tools/prose.py", "tests/guide/tools/test_prose.py")  # they quote the phrases

_CPP = re.compile(
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

    source = re.sub(r"^(`{3,}|:{3,}).*?^\1`*$", blank, source, flags=re.DOTALL | re.MULTILINE)
    source = re.sub(r"<!--(?!.*prose: ok).*?-->", blank, source, flags=re.DOTALL)
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
            for paragraph in re.split(r"(\n(?:\s*\n)?)(?=\s*(?:\n|[-*]|\w+:))", node.value):
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
    for match in _CPP.finditer(source):
        line = source.count("\n", 0, match.start()) + 1
        if match["comment"]:
            text = re.sub(r"^\s*(?://[/!<]*|/\*+|\*+/?) ?", "", match["comment"], flags=re.MULTILINE)
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
    """Yields the prose of a file: paragraphs, comments, docstrings and texts of errors."""
    source = path.read_text()
    if path.suffix == ".md":
        return _markdown(source)
    if path.suffix in (".py", ".pyi"):
        return _python(source)
    if path.suffix == ".toml":
        return _toml(source)
    return _cpp(source)


class Hit(NamedTuple):
    """A phrase in a file."""

    path: Path
    line: int
    rule: Rule
    phrase: str


def hits_in(path: Path) -> Iterator[Hit]:
    """Yields the phrases of a file that a rule names."""
    lines = path.read_text().splitlines()
    for line, text in texts_of(path):
        flat = re.sub(r"\s", " ", text)
        for rule in RULES:
            for match in rule.pattern.finditer(flat):
                number = line + text.count("\n", 0, match.start())
                if "prose: ok" not in lines[min(number, len(lines)) - 1]:
                    end = flat.find(" ", match.end() + 12)
                    phrase = flat[match.start() : end if end > 0 else None].strip()
                    yield Hit(path, number, rule, phrase)


def files(places: list[str]) -> list[Path]:
    """Returns the files with prose below the places that git knows or could add."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "--", *places]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [
        ROOT / name
        for name in sorted(set(names.splitlines()))
        if name.endswith(SUFFIXES) and name not in SKIPPED and (ROOT / name).is_file()
    ]


def main() -> int:
    """Prints the hits, or their number for each rule."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("places", nargs="*", default=EVERYTHING, help="files and folders")
    parser.add_argument("--count", action="store_true", help="print only a table")
    arguments = parser.parse_args()
    hits = [hit for path in files(list(arguments.places)) for hit in hits_in(path)]
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
