# SPDX-License-Identifier: BSD-3-Clause
"""Compares two installed versions of torch, and lists every change to review here.

    python tools/upgrade.py FROM TO                  # folders of two environments
    python tools/upgrade.py FROM TO --diff           # and the changes of section 6
    python tools/upgrade.py FROM TO --write-hashes   # and the hashes of both versions

The tool reads sources only and imports neither torch. CONTRIBUTING.md describes the
steps of an upgrade.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import functools
import hashlib
import json
import re
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import device_lists
import yaml  # type: ignore[import-untyped]
from headers import CLASS, COMMENT, Virtual, virtual_methods
from torch_names import calls
from torch_tree import Tree
from workspace import ROOT

WIDTH = 100
INDUCTOR = Path("packages/openreg-inductor/src/openreg_inductor")
PATCHES = INDUCTOR / "_patches.py"
HASHES = INDUCTOR / "_sources.json"

_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[>"]', re.M)
_BASE = re.compile(r"\b((?:[a-z]\w*::)+[A-Z]\w*\b)(?!::)")
_OPERATOR = re.compile(
    r'"aten::(?P<string>\w+(?:\.\w+)?)"|\bops::(?P<typed>[A-Za-z_]\w*)'
    r'|\bimpl\(\s*"(?P<impl>\w+(?:\.\w+)?)"|^CUDA_[A-Z_]+\("(?P<limit>\w+(?:\.\w+)?)"'
    r"|\bat::(?P<call>\w+)\(|\bops\.aten\.(?P<python>\w+(?:\.(?!default\b)\w+)?)",
    re.M,
)
_AUTOCAST = re.compile(r"#define (AT_FORALL_\w+)\(_\)((?:[^\n]*\\\n)*[^\n]*)")
_SOURCE = re.compile(r"[a-z_][\w.]*:[A-Za-z_][\w.]*")
_KEYS = re.compile(r"CPU|CUDA|Meta|Composite\w+")


class Finding(NamedTuple):
    """A change to review: its kind, a line of text, and the text for ``--diff``."""

    kind: str
    text: str
    diff: str = ""


class Ours:
    """The sources of this project, by their path from the root.

    Attributes:
        root: The root of the repository.
        cpp: The text of each C++ file.
        python: The text of each Python file of the packages.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        cpp = [*root.glob("packages/*/csrc/**/*"), *root.glob("extension/*")]
        self.cpp = self._texts(
            path for path in cpp if path.suffix in (".h", ".hpp", ".cpp", ".def")
        )
        self.python = self._texts(root.glob("packages/*/src/**/*.py"))

    def _texts(self, paths: Iterable[Path]) -> dict[str, str]:
        return {
            str(path.relative_to(self.root)): path.read_text(encoding="utf-8")
            for path in sorted(paths)
        }


def uses(texts: Mapping[str, str], pattern: re.Pattern[str]) -> dict[str, list[str]]:
    """Returns the places of each text that a group of a pattern matches."""
    found = defaultdict(list)
    for file, text in texts.items():
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found[match[match.lastindex or 0]].append(f"{file}:{line}")
    return dict(sorted(found.items()))


def at(places: Sequence[str]) -> str:
    """Returns the first place, and the number of the others."""
    more = f" (+{len(places) - 1})" if len(places) > 1 else ""
    return f" at {places[0]}{more}" if places else ""


def changed(old: str, new: str) -> str:
    """Returns the numbers of added and removed lines; empty for equal texts."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
    signs = Counter(line[0] for line in [*lines][2:])
    return f"+{signs['+']} -{signs['-']}" if signs else ""


def code(header: str) -> str:
    """Returns a header without comments, empty lines and indentation."""
    lines = map(str.strip, COMMENT.sub("", header).splitlines())
    return "\n".join(filter(None, lines))


def included(ours: Ours, old: Tree, new: Tree) -> Iterator[Finding]:
    """Compares the headers that the C++ of this project includes."""
    for name, places in uses(ours.cpp, _INCLUDE).items():
        before, after = old.header(name), new.header(name)
        if before is None:
            continue
        if after is None:
            yield Finding("missing", f"{name}{at(places)}")
        elif lines := changed(code(before), code(after)):
            yield Finding("changed", f"{lines:9} {name}")


@functools.cache
def classes(tree: Tree) -> dict[str, list[tuple[str, str]]]:
    """Returns for each class its bases and the text of its header."""
    found = defaultdict(list)
    for path in sorted((tree.torch / "include").rglob("*.h*")):
        if "ops" not in path.parts and "native" not in path.parts:
            text = path.read_text(encoding="utf-8", errors="replace")
            if "virtual " not in text and "override" not in text:
                continue
            for match in CLASS.finditer(text):
                found[match["name"]].append((match["bases"] or "", text))
    return found


@functools.cache
def methods(
    tree: Tree, name: str
) -> tuple[str, dict[str, list[Virtual]]] | tuple[None, None]:
    """Returns the bases and the virtual methods of a class such as ``c10d::Work``."""
    *scopes, short = name.split("::")
    candidates = classes(tree).get(short, [])
    scope = re.compile(rf"namespace [\w:]*\b{scopes[-1] if scopes else ''}\b")
    for bases, text in sorted(candidates, key=lambda each: not scope.search(each[1])):
        by_name = defaultdict(list)
        try:
            for method in virtual_methods(text, short):
                by_name[method.name].append(method)
        except ValueError:
            continue
        if by_name:
            return bases, by_name
    return None, None


def derived(ours: Ours, tree: Tree) -> dict[str, set[str]]:
    """Returns each class to derive from, and the files that derive from it."""
    found: dict[str, set[str]] = defaultdict(set)
    waiting = [
        (base, file)
        for file, text in ours.cpp.items()
        for match in CLASS.finditer(text)
        for base in _BASE.findall(match["bases"] or "")
    ]
    while waiting:
        name, file = waiting.pop()
        bases, by_name = methods(tree, name)
        if by_name and file not in found[name]:
            found[name].add(file)
            own = re.findall(r"(?:\w+::)*[A-Z]\w*", bases or "")
            waiting += [(base, file) for base in own]
    return {name: files for name, files in sorted(found.items()) if files}


def types(method: Virtual) -> str:
    """Returns a declaration without the names and defaults of its parameters."""
    head, _, rest = method.declaration.partition("(")
    parameters, _, after = rest.rpartition(")")
    parameters = re.sub(r"\s*=\s*[^,]*", "", parameters.replace("[[maybe_unused]]", ""))
    parameters = re.sub(r"(?<=[\w&*>]) +\w+ *(?=,|$)", "", parameters)
    bare = re.sub(r"\s*([(),&*<>])\s*", r"\1", f"{head}({parameters}){after}")
    return bare.strip().replace(",", ", ")


def virtuals(ours: Ours, old: Tree, new: Tree) -> Iterator[Finding]:
    """Compares the virtual methods of the classes that this project derives from."""
    for name, files in derived(ours, old).items():
        _, before = methods(old, name)
        _, after = methods(new, name)
        texts = {file: ours.cpp[file] for file in sorted(files)}
        if before is None or after is None:
            yield Finding("class is gone", f"{name}{at([*texts])}")
            continue
        for method in sorted(before.keys() | after.keys()):
            was, now = before.get(method, []), after.get(method, [])
            own = re.compile(rf"\b{method}\([^;{{]*?\boverride\b")
            here = at([place for found in uses(texts, own).values() for place in found])
            if not now:
                yield Finding("removed", f"{name}: {was[0].declaration}{here}")
            elif not was:
                kind = "added, pure" if now[0].pure else "added"
                yield Finding(kind, f"{name}: {'; '.join(e.declaration for e in now)}")
            elif {*map(types, was)} != {*map(types, now)}:
                change = difference(map(types, was), map(types, now))
                yield Finding("changed", f"{name}: {change}{here}")
            elif [each.pure for each in was] != [each.pure for each in now]:
                yield Finding("pure or not", f"{name}: {method}{here}")
            elif [code(e.body or "") for e in was] != [code(e.body or "") for e in now]:
                yield Finding("other default", f"{name}: {method}{here}")


class Operator(NamedTuple):
    """An operator of native_functions.yaml."""

    schema: str
    keys: frozenset[str]
    tags: frozenset[str]


@functools.cache
def operators(tree: Tree) -> dict[str, Operator]:
    """Reads native_functions.yaml, including the operators that it generates."""
    path = tree.site / "torchgen/packaged/ATen/native/native_functions.yaml"
    found = {}
    for entry in yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader):
        name, _, schema = entry["func"].partition("(")
        keys = ",".join(entry.get("dispatch", {})).replace(" ", "").split(",")
        if "structured_delegate" in entry:
            keys = ["structured"]
        tags = entry.get("tags", [])
        found[name] = Operator(
            f"({schema}",
            frozenset(key for key in keys if _KEYS.fullmatch(key))
            or frozenset({keys[0] or "CompositeImplicitAutograd"}),
            frozenset([tags] if isinstance(tags, str) else tags),
        )
        for generated in filter(None, entry.get("autogen", "").split(", ")):
            found[generated] = Operator("", frozenset(), frozenset())
    return found


def difference(old: Iterable[str], new: Iterable[str]) -> str:
    """Returns the added and removed items of a set; empty for equal sets."""
    before, after = set(old), set(new)
    signs = [f"+{each}" for each in sorted(after - before)]
    return " ".join([*signs, *(f"-{each}" for each in sorted(before - after))])


def parts(schema: str) -> list[str]:
    """Returns the parameters and the result of a schema."""
    parameters, _, result = schema.removeprefix("(").partition(") -> ")
    return [*parameters.split(", "), f"-> {result}"]


def declared(_: Ours, old: Tree, new: Tree) -> Iterator[Finding]:
    """Compares the declarations of all operators."""
    before, after = operators(old), operators(new)
    yield from (Finding("added", name) for name in sorted(after.keys() - before))
    yield from (Finding("removed", name) for name in sorted(before.keys() - after))
    common = sorted(before.keys() & after)
    for name in common:
        if change := difference(
            *(parts(each[name].schema) for each in (before, after))
        ):
            yield Finding("other schema", f"{name}: {change}")
    for field in ("keys", "tags"):
        groups = defaultdict(list)
        for name in common:
            sets = (getattr(each[name], field) for each in (before, after))
            groups[difference(*sets)].append(name)
        for change, names in sorted(groups.items()):
            if change:
                more = f", and {len(names) - 12} more" if len(names) > 12 else ""
                yield Finding(field, f"{change}: {', '.join(names[:12])}{more}")


def registered(ours: Ours, old: Tree, new: Tree) -> Iterator[Finding]:
    """Compares the operators that this project names."""
    before, after = operators(old), operators(new)
    known: dict[str, set[str]] = defaultdict(set)
    for full in before:
        for spelled in (full, full.partition(".")[0], full.replace(".", "_")):
            known[spelled].add(full)
    for name, places in uses(ours.cpp | ours.python, _OPERATOR).items():
        # A name without an overload is an operator, or all its overloads.
        full_names = {name} if name in before else known.get(name, set())
        kept = full_names & after.keys()
        if full_names and not kept:
            yield Finding("missing", f"{name}{at(places)}")
        for full in sorted(kept):
            if before[full].schema != after[full].schema:
                yield Finding("other schema", f"{full}{at(places)}")
            elif before[full].keys != after[full].keys:
                change = difference(before[full].keys, after[full].keys)
                yield Finding("other keys", f"{full} {change}{at(places)}")


def autocast(_: Ours, old: Tree, new: Tree) -> Iterator[Finding]:
    """Compares CUDA's lists of autocast."""

    def lists(tree: Tree) -> dict[str, list[str]]:
        text = tree.header("ATen/autocast_mode.h") or ""
        return {
            name: [
                " ".join(each.split())
                for each in re.findall(r"\b_\((.*?)\)", body, re.S)
            ]
            for name, body in _AUTOCAST.findall(text)
        }

    before, after = lists(old), lists(new)
    for name in sorted(before.keys() | after):
        if change := difference(before.get(name, []), after.get(name, [])):
            yield Finding("changed", f"{name}: {change}")


def functions(ours: Ours) -> list[str]:
    """Returns the names ``module:name`` that openreg-inductor hashes."""
    tree = ast.parse((ours.root / PATCHES).read_text(encoding="utf-8"))
    values = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    found = {value for value in values if isinstance(value, str)}
    for hashes in stored(ours).values():
        found |= hashes.keys()
    return sorted(name for name in found if _SOURCE.fullmatch(name))


def stored(ours: Ours) -> dict[str, dict[str, str]]:
    """Returns the stored hashes of each version of torch."""
    path = ours.root / HASHES
    if not path.is_file():
        return {}
    hashes: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))
    return hashes


def source(tree: Tree, name: str) -> str:
    """Returns the source of a function ``module:name``; empty if it is missing."""
    prefix = "" if name.startswith("torch.") else "torch._inductor."
    definition = tree.find(prefix + name.replace(":", "."))
    return tree.source(definition) if definition else ""


def digest(text: str) -> str:
    """Returns the hash of a source; empty for a missing one, as in openreg-inductor."""
    return hashlib.sha256(text.encode()).hexdigest()[:16] if text else ""


def write_hashes(ours: Ours, *trees: Tree) -> None:
    """Stores the hashes of versions, without the functions that a version lacks."""
    hashes = stored(ours)
    for tree in trees:
        values = {name: digest(source(tree, name)) for name in functions(ours)}
        hashes[tree.short] = {name: value for name, value in values.items() if value}
    text = json.dumps(hashes, indent=2, sort_keys=True)
    (ours.root / HASHES).write_text(f"{text}\n", encoding="utf-8")


def hashed(ours: Ours, old: Tree, new: Tree) -> Iterator[Finding]:
    """Compares the functions that openreg-inductor hashes."""
    for name in functions(ours):
        before, after = source(old, name), source(new, name)
        if not after:
            yield Finding("missing" if before else "missing in both", name)
        elif lines := changed(before, after):
            pair = (before.splitlines(), after.splitlines())
            diff = difflib.unified_diff(*pair, old.short, new.short, lineterm="")
            yield Finding("changed", f"{lines:9} {name}", "\n".join(diff))


def parameters(tree: Tree, name: str) -> list[str]:
    """Returns the parameters of a function or a constructor, without annotations."""
    definition = tree.find(name)
    node = definition.node if definition else None
    if isinstance(node, ast.ClassDef):
        return parameters(tree, f"{name}.__init__")
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return []
    for each in ast.walk(node.args):
        if isinstance(each, ast.arg):
            each.annotation = None
    return ast.unparse(node.args).split(", ")


def used(ours: Ours, old: Tree, new: Tree) -> Iterator[Finding]:
    """Compares the names of torch that the Python of this project uses."""
    gone: set[str] = set()
    for name, places in calls(ours.python).items():
        if not old.find(name) or name.rpartition(".")[0] in gone:
            continue
        if not new.find(name):
            gone.add(name)
            yield Finding("missing", f"{name}{at(places)}")
            continue
        was, now = parameters(old, name), parameters(new, name)
        if was != now:
            change = difference(was, now) or "another order"
            yield Finding("other parameters", f"{name}: {change}{at(places)}")


def listed(_: Ours, old: Tree, new: Tree) -> Iterator[Finding]:
    """Compares the fixed device lists of docs/mechanisms/closed.md."""
    for row in device_lists.rows():
        before = device_lists.source(row.place, old)
        if before is None:
            continue
        try:
            device_lists.check(row, new)
        except ValueError as error:
            yield Finding("other check", str(error))
            continue
        lines = changed(before, device_lists.source(row.place, new) or "")
        if lines and ".h: " not in f"{row.place}: ":  # section 1 has headers
            yield Finding("changed around", f"{lines:9} {row.place} ({row.name})")


class Section(NamedTuple):
    """A section of the report: a short name, a title, and its function."""

    name: str
    title: str
    find: Callable[[Ours, Tree, Tree], Iterator[Finding]]


SECTIONS = (
    Section("headers", "Headers that our C++ includes, without comments", included),
    Section("methods", "Virtual methods of the classes that we derive from", virtuals),
    Section("operators", "All operators: native_functions.yaml", declared),
    Section("ours", "Operators that our sources name", registered),
    Section("autocast", "CUDA's autocast lists: ATen/autocast_mode.h", autocast),
    Section("hashes", "Functions that openreg-inductor hashes", hashed),
    Section("names", "Names of torch that our Python uses", used),
    Section("lists", "Device lists: docs/mechanisms/closed.md", listed),
)


def wrapped(text: str, indent: int) -> str:
    """Wraps a text at the width of the report."""
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_on_hyphens=False,
        break_long_words=False,
    )


def render(findings: Sequence[Finding], *, diff: bool = False) -> Iterator[str]:
    """Yields the lines of a section: one list for each kind of findings."""
    for kind in dict.fromkeys(finding.kind for finding in findings):
        same = [finding for finding in findings if finding.kind == kind]
        yield f"  {kind} ({len(same)})"
        if all(" " not in finding.text for finding in same):
            yield wrapped(", ".join(finding.text for finding in same), 4)
            continue
        for finding in same:
            yield wrapped(finding.text, 4)
            if diff and finding.diff:
                yield textwrap.indent(finding.diff, "      ")


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Prints the report.

    Args:
        arguments: The command line.
        root: The root of this project.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "old", metavar="FROM", type=Path, help="the folder of an environment"
    )
    parser.add_argument(
        "new", metavar="TO", type=Path, help="likewise, of the new torch"
    )
    parser.add_argument(
        "--diff", action="store_true", help="print the changed functions"
    )
    parser.add_argument(
        "--write-hashes", action="store_true", help=f"write {HASHES.name}"
    )
    options = parser.parse_args(arguments)
    try:
        old, new = Tree(options.old), Tree(options.new)
    except ValueError as error:
        parser.error(str(error))
    ours = Ours(root)
    print(f"torch {old.version} -> {new.version}")
    counts = []
    for number, section in enumerate(SECTIONS, 1):
        findings = [*section.find(ours, old, new)]
        counts.append(f"{section.name} {len(findings)}")
        print(f"\n{number}. {section.title}: {len(findings) or 'no changes'}")
        for line in render(findings, diff=options.diff):
            print(line)
    if options.write_hashes:
        write_hashes(ours, old, new)
    print(f"\nto review: {', '.join(counts)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
