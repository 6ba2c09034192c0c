# SPDX-License-Identifier: BSD-3-Clause
"""tools/device_lists.py: its page is current, and every row is true."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest
import torch

from support.isolation import marked
from support.programs import ROOT, Load, Program

PROGRAMS = sorted((ROOT / "docs/examples/device_lists").glob("*.py"))
STATES = {m.name: m.state for m in torch.openreg.mechanisms()}


@pytest.fixture
def lists(load_tool: Load) -> ModuleType:
    return load_tool("device_lists")


def said(path: Path, what: str) -> list[str]:
    """Returns the text after ``what`` in the comments of a program."""
    source = path.read_text(encoding="utf-8")
    return re.findall(rf"^ *# {what}: (.*)$", source, re.MULTILINE)


def test_page_is_current(lists: ModuleType) -> None:
    assert len(PROGRAMS) >= 25
    assert lists.PAGE.read_text(encoding="utf-8") == lists.page()


@pytest.mark.parametrize(
    "path",
    marked(
        PROGRAMS,
        {"share_storage": "shared memory", "default_process_group": "occl"},
        lambda path: path.stem,
    ),
    ids=lambda path: path.stem,
)
def test_row_is_true(lists: ModuleType, program: Program, path: Path) -> None:
    row = lists.read(path)
    result = program(path)
    assert result.returncode == 0, result.stderr
    prints = said(path, "prints")
    assert prints
    assert result.stdout.splitlines() == prints
    warnings = said(path, "warns")
    # With its mechanism nothing fails.
    warns = row.noticed == "a warning" and not row.way.startswith("mechanism")
    assert bool(warnings) == warns
    assert all(text in result.stderr for text in warnings), result.stderr
    assert bool(row.message) == (row.noticed == "an error" or bool(warnings))

    expected = "planned" if row.kind == "planned" else "on"
    assert [STATES[name] for name in row.mechanisms] == [expected] * len(row.mechanisms)
    failures = said(path, "without it")
    assert bool(failures) == (row.kind == "mechanism")
    for name in row.mechanisms if row.kind == "mechanism" else []:
        without = program(path, OPENREG_DISABLE=name)
        assert without.returncode in (0, 1)
        assert without.stdout.splitlines() != prints
        assert failures[0] in without.stdout + without.stderr


def write(tmp_path: Path, **changes: str) -> Path:
    """Writes a program whose comments are a row, with some fields changed."""
    fields = {
        "part": "Tools",
        "place": "torch/random.py: fork_rng",
        "asks": "device_type == 'meta'",
        "means": "nothing",
        "noticed": "nothing",
        "way": "closed",
    }
    path = tmp_path / "row.py"
    path.write_text(
        "".join(f"# {name}: {text}\n" for name, text in {**fields, **changes}.items())
    )
    return path


def test_indented_comment_continues_the_previous_one(
    lists: ModuleType, tmp_path: Path
) -> None:
    path = write(tmp_path, means="one\n#   two\n#   three\n# four")
    assert lists.read(path).means == "one two three"


@pytest.mark.parametrize(
    ("way", "shown"),
    [
        ("mechanism guard", "lost"),
        ("closed", "no luck"),
    ],
)
def test_row_has_the_error_that_its_program_shows(
    lists: ModuleType, tmp_path: Path, way: str, shown: str
) -> None:
    path = write(tmp_path, noticed="an error", way=way)
    head = path.read_text()
    path.write_text(
        f"{head}print(2)\n# prints: 2\ntry:\n    call()\nexcept ValueError as error:\n"
        "    print(error)\n# prints: no luck\n# without it: lost\n"
    )
    assert lists.read(path).message == shown
    path.write_text(
        f"{head}try:\n    call()\nexcept ValueError as error:\n"
        '    print("luck" in str(error))\n# prints: True\n# without it: lost\n'
    )
    assert lists.read(path).message == ("lost" if shown == "lost" else "luck")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"part": "Kitchen"}, "'Kitchen': expected one of"),
        ({"noticed": "a bang"}, "'a bang': expected one of"),
        ({"way": "ajar"}, "'ajar': expected one of"),
        ({"means": "one\n# means: two"}, "two lines '# means:'"),
    ],
)
def test_wrong_comment_is_an_error(
    lists: ModuleType, tmp_path: Path, changes: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        lists.read(write(tmp_path, **changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"place": "torch/kitchen.py"}, "lacks this file"),
        ({"place": "torch/random.py: fork_spoon"}, "lacks this name"),
        ({"asks": "device.type == 'spoon'"}, "does not contain"),
    ],
)
def test_row_that_is_not_true_of_this_torch_is_an_error(
    lists: ModuleType, tmp_path: Path, changes: dict[str, str], message: str
) -> None:
    row = lists.read(write(tmp_path))
    assert "def fork_rng" in lists.source(row.place)
    with pytest.raises(ValueError, match=message):
        lists.check(lists.read(write(tmp_path, **changes)))


def test_place_may_be_a_method_a_variable_or_a_header(lists: ModuleType) -> None:
    assert "is_cuda" in lists.source("torch/_tensor.py: Tensor.__dir__")
    assert '"cuda"' in lists.source(
        "torch/_custom_op/impl.py: SUPPORTED_DEVICE_TYPE_TO_KEY"
    )
    assert "is_sparse" in lists.source("c10/core/TensorImpl.h")
    assert lists.source("torch/csrc/Storage.cpp") is None
