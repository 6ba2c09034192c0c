# SPDX-License-Identifier: BSD-3-Clause
"""tools/upgrade.py: each change between two torches is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from support.programs import ROOT, Load

BACKEND = """
namespace c10d {
class TORCH_API Backend : public Holder {
 public:
  virtual void wait(int64_t seconds = 0) { } // waits
  virtual void stop() = 0;
};
}
"""
OPERATORS = """
- func: first(Tensor self, int dim) -> Tensor
  dispatch:
    CPU, CUDA: first
- func: second.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
- func: third(Tensor self) -> Tensor
  tags: core
  autogen: third.out
"""
AUTOCAST = "#define AT_FORALL_FP32(_) \\\n  _(first)  \\\n  _(second, out)\n"
MODULE = """
from ._more import *
from ._more import moved as again

@wraps
def changed(self, size: int, *, key=None):
    return size  # the same

class Base:
    def inherited(self): ...

class Derived(Base):
    pass
"""
OURS_CPP = """
#include <c10d/Backend.h>
#include "ours.h"
class Ours final : public c10d::Backend {
  void wait(int64_t) override;
};
auto names = {"aten::first", "aten::third"};
"""
OURS_PYTHON = """
import torch._inductor.ir as ir
from torch._inductor._more import starred

def run(value):
    return ir.changed(value), torch_ops.ops.aten.third.default
"""
PATCHES = 'NAMES = {"ir:changed", "ir:Derived.inherited"}\n'
FILES = {
    "torch/version.py": "__version__ = '2.13.0+cpu'\n",
    "torch/__init__.py": "",
    "torch/include/c10d/Backend.h": BACKEND,
    "torch/include/ATen/autocast_mode.h": AUTOCAST,
    "torch/_inductor/__init__.py": "",
    "torch/_inductor/ir.py": MODULE,
    "torch/_inductor/_more.py": "starred = moved = 1\n",
    "torchgen/packaged/ATen/native/native_functions.yaml": OPERATORS,
}
SOURCES = {
    "packages/openreg-aten/csrc/ours.cpp": OURS_CPP,
    "packages/openreg-inductor/src/openreg_inductor/_names.py": OURS_PYTHON,
    "packages/openreg-inductor/src/openreg_inductor/_patches.py": PATCHES,
}
Change = tuple[str, str, str]
Report = Callable[..., list[str]]


def write(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def tool(load_tool: Load, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    tool = load_tool("upgrade")
    monkeypatch.setattr(tool.device_lists, "rows", list)
    return tool


@pytest.fixture
def report(
    tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Report:
    """Returns a function that changes the new torch and returns the report."""

    def run(*changes: Change, options: tuple[str, ...] = ()) -> list[str]:
        old, new = tmp_path / "old", tmp_path / "env/lib/python3.11/site-packages"
        write(tmp_path, SOURCES)
        write(old, FILES)
        write(new, FILES | {"torch/version.py": "__version__ = '2.14.0'\n"})
        for name, before, after in changes:
            text = (new / name).read_text()
            assert text.count(before) == 1
            (new / name).write_text(text.replace(before, after))
        arguments = [str(old), str(tmp_path / "env"), *options]
        assert tool.main(arguments, tmp_path) == 0
        lines: list[str] = capsys.readouterr().out.splitlines()
        assert lines[0] == "torch 2.13.0+cpu -> 2.14.0"
        return [" ".join(line.split()) for line in lines]

    return run


def test_equal_torches_have_nothing_to_review(report: Report) -> None:
    lines = report()
    assert sum(line.endswith(": no changes") for line in lines) == 8
    assert lines[-1].startswith("to review: headers 0, methods 0, operators 0,")


HEADER = "torch/include/c10d/Backend.h"
YAML = "torchgen/packaged/ATen/native/native_functions.yaml"
IR = "torch/_inductor/ir.py"
NAMES = "packages/openreg-inductor/src/openreg_inductor/_names.py"
CPP = "packages/openreg-aten/csrc/ours.cpp"


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (
            (HEADER, "void stop() = 0;", "void stop() = 0; virtual int go() = 0;"),
            ["+1 -1 c10d/Backend.h", "added, pure (1)", "c10d::Backend: int go()"],
        ),
        (
            (HEADER, "int64_t seconds = 0", "double seconds"),
            [f"c10d::Backend: +void wait(double) -void wait(int64_t) at {CPP}:5"],
        ),
        (
            (HEADER, "{ } // waits", "{ sleep(); }"),
            ["other default (1)", f"c10d::Backend: wait at {CPP}:5"],
        ),
        ((HEADER, "class TORCH_API Backend", "class Core"), ["class is gone (1)"]),
        (
            (YAML, "first(Tensor self, int dim)", "first(Tensor self, SymInt dim)"),
            ["first: +SymInt dim -int dim", f"first at {CPP}:7"],
        ),
        ((YAML, "CPU, CUDA: first", "CUDA: first"), ["-CPU: first"]),
        ((YAML, "tags: core", "tags: [core, pointwise]"), ["+pointwise: third"]),
        (
            (YAML, "func: third(", "func: fourth("),
            ["added (1)", "fourth", "missing (1)", f"third at {CPP}:7 (+1)"],
        ),
        (
            ("torch/include/ATen/autocast_mode.h", "(second, out)", "(third)"),
            ["AT_FORALL_FP32: +third -second, out"],
        ),
        ((IR, "return size ", "return -size "), ["+1 -1 ir:changed"]),
        ((IR, "class Derived(Base)", "class Derived"), ["ir:Derived.inherited"]),
        (
            (IR, "size: int, *, key=None", "size: float"),
            [
                "torch._inductor.ir.changed: -* -key=None at",
                f"{NAMES}:6",
            ],
        ),
        (
            ("torch/_inductor/_more.py", "starred = moved", "moved"),
            [f"torch._inductor._more.starred at {NAMES}:3"],
        ),
    ],
)
def test_change_is_found(report: Report, change: Change, found: list[str]) -> None:
    text = " ".join(report(change))
    assert all(line in text for line in found), text


@pytest.mark.parametrize(
    "change",
    [
        (HEADER, "// waits", "// waits for all work"),
        (HEADER, "class TORCH_API Backend", "class TORCH_API  Backend"),
        (YAML, "CPU, CUDA: first", "CPU: first\n    CUDA: first_cuda"),
        ("torch/_inductor/_more.py", "starred = moved = 1", "starred = moved = 2"),
    ],
)
def test_change_without_an_effect_is_not_found(report: Report, change: Change) -> None:
    *_, counts = report(change)
    rest = counts.replace("headers 1", "headers 0")
    assert all(f" {number}" not in rest for number in range(1, 9)), counts


def test_diff_shows_the_changed_function(report: Report) -> None:
    lines = report((IR, "return size ", "return -size "), options=("--diff",))
    assert "- return size # the same" in lines
    assert "+ return -size # the same" in lines


def test_no_line_is_wider_than_the_terminal(
    report: Report, tool: ModuleType, tmp_path: Path
) -> None:
    many = "".join(f"- func: operator_{i}() -> ()\n" for i in range(99))
    lines = report((YAML, "- func: first", f"{many}- func: first"))
    assert "added (99)" in lines
    assert max(map(len, lines)) <= 100


def test_written_hashes_are_kept_for_other_versions(
    report: Report, tmp_path: Path, tool: ModuleType
) -> None:
    report(options=("--write-hashes",))
    path = tmp_path / tool.HASHES
    hashes = json.loads(path.read_text())
    assert [*hashes] == ["2.13", "2.14"]
    assert [*hashes["2.14"]] == ["ir:Derived.inherited", "ir:changed"]
    path.write_text(json.dumps({"2.12": {"ir:Base": "0"}, **hashes}))
    report((IR, "class Derived(Base)", "class Derived"), options=("--write-hashes",))
    hashes = json.loads(path.read_text())
    assert hashes["2.12"] == {"ir:Base": "0"}
    assert [*hashes["2.13"]] == ["ir:Base", "ir:Derived.inherited", "ir:changed"]
    assert [*hashes["2.14"]] == ["ir:Base", "ir:changed"]


def test_folder_without_torch_is_an_error(
    tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        tool.main([str(tmp_path), str(tmp_path)])
    assert "found 0 torch, expected one" in capsys.readouterr().err


def test_stored_hashes_are_those_of_the_installed_torch(tool: ModuleType) -> None:
    here = tool.device_lists.HERE
    ours = tool.Ours.__new__(tool.Ours)
    ours.root = ROOT
    stored = tool.stored(ours)
    assert here.short in stored
    assert {
        path: tool.digest(tool.source(here, path)) for path in stored[here.short]
    } == stored[here.short]


def test_hash_is_the_same_as_in_openreg_inductor(tool: ModuleType) -> None:
    patches = pytest.importorskip("openreg_inductor._patches")
    here = tool.device_lists.HERE
    for path in (  # a method, a decorated and a wrapped function; a class
        "torch._tensor:Tensor.__reduce_ex__",
        "torch._refs:native_layer_norm",
        "torch.random:fork_rng",
        "torch.random:Missing",
        "torch.amp.autocast_mode:_cast",
        "torch.nn.modules.linear:Linear",
    ):
        assert tool.digest(tool.source(here, path)) == patches._hash(path), path
