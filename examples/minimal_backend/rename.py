# SPDX-License-Identifier: BSD-3-Clause
"""Writes a copy of this backend for a device with another name.

    python rename.py acme FOLDER            the whole backend
    python rename.py acme FOLDER --step 4   the backend after step 4 of 10

In the copy, the device is acme, the package torch_acme and the operators acme::...
"""

from __future__ import annotations

import argparse
import keyword
import os
import re
import sys
from pathlib import Path

NAME = "minimal"
SOURCE = Path(__file__).resolve().parent
FILES = (".clang-format", "CMakeLists.txt", "README.md", "pyproject.toml")
FOLDERS = ("csrc", "src", "tests")

# The step that adds each file; all other files exist from step 1 on. Inside a file,
# [step n] and [step end] enclose the lines that step n adds; [step never] marks lines
# that no copy contains.
ADDED = {
    "csrc/guard.cpp": 2,
    "csrc/allocator.cpp": 3,
    "csrc/hooks.cpp": 4,
    f"src/torch_{NAME}/device.py": 5,
    "csrc/operators.cpp": 6,
    "csrc/copy.cpp": 6,
    "csrc/fallback.h": 7,
    "csrc/fallback.cpp": 7,
    "csrc/kernels.cpp": 7,
    "csrc/host_allocator.cpp": 8,
    "csrc/generator.h": 9,
    "csrc/generator.cpp": 9,
    "csrc/autocast.cpp": 10,
}
LAST = max(ADDED.values())
_MARK = re.compile(
    r"^\s*(?://|#|<!--) \[(docs: [\w-]+|step (\d+|end|never))\](?: -->)?$"
)


class MistakeError(Exception):
    """The request cannot be carried out; the message gives the reason in one line."""


def check_name(name: str) -> None:
    """Checks that a device may have this name.

    Raises:
        MistakeError: If it may not.
    """
    if not re.fullmatch(r"[a-z][a-z_]*", name):
        raise MistakeError(
            f"{name!r} must consist of the letters a to z, lower case, and _"
        )
    if keyword.iskeyword(name):
        raise MistakeError(f"{name!r} is a Python keyword")
    if name == "openreg":
        raise MistakeError(f"{name!r} is the device of torch-openreg")
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # load no other backend
    import torch

    try:
        torch.device(name)
    except RuntimeError:
        pass  # the name is free
    else:
        raise MistakeError(f"{name!r} is a PyTorch device")
    owners = {
        "torch": torch,
        "torch.Tensor": torch.Tensor,
        "torch.nn.Module": torch.nn.Module,
        "torch.UntypedStorage": torch.UntypedStorage,
    }
    for where, owner in owners.items():
        for attribute in (name, f"is_{name}"):
            if hasattr(owner, attribute):
                raise MistakeError(f"{name!r} is taken: there is {where}.{attribute}")
    operators = torch._C._dispatch_get_all_op_names()
    if name in {operator.partition("::")[0] for operator in operators}:
        raise MistakeError(f"{name!r} is taken: it is an operator namespace")


def check_folder(folder: Path) -> None:
    """Checks that a copy can be written into a folder.

    Raises:
        MistakeError: If it cannot.
    """
    if folder.exists() and not folder.is_dir():
        raise MistakeError(f"{folder} is not a folder")
    if folder.exists() and any(folder.iterdir()):
        raise MistakeError(f"the folder {folder} is not empty")
    if folder.resolve().is_relative_to(SOURCE):
        raise MistakeError(f"{folder} is inside {SOURCE}, the folder to copy")


def renamed(text: str, name: str) -> str:
    """Replaces the device name in a text or path, in its three spellings."""
    for spelling in (str.lower, str.upper, str.capitalize):
        text = text.replace(spelling(NAME), spelling(name))
    return text


def cut(text: str, step: int) -> str:
    """Removes the marks, and the lines that steps after ``step`` add."""
    lines = []
    kept = True
    for line in text.splitlines():
        mark = _MARK.match(line)
        if mark and mark[2]:
            kept = mark[2] == "end" or (mark[2].isdecimal() and int(mark[2]) <= step)
        elif kept and not mark:
            lines.append(line)
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines).rstrip("\n") + "\n")


def write(name: str, folder: Path, step: int = LAST) -> None:
    """Writes the copy.

    Args:
        name: Name of the device, which :func:`check_name` accepts.
        folder: The target folder; it is created if it does not exist.
        step: The last step to include, 1 to ``LAST``.
    """
    paths = [SOURCE / each for each in FILES]
    for each in FOLDERS:
        paths += (path for path in (SOURCE / each).rglob("*") if path.is_file())
    for path in paths:
        relative = path.relative_to(SOURCE)
        if "__pycache__" in path.parts or ADDED.get(relative.as_posix(), 0) > step:
            continue
        target = folder / renamed(str(relative), name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(renamed(cut(path.read_text("utf-8"), step), name), "utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", help="the device name, such as acme")
    parser.add_argument("folder", type=Path, help="a new or empty folder")
    parser.add_argument(
        "--step", type=int, default=LAST, choices=range(1, LAST + 1), metavar="1..10"
    )
    options = parser.parse_args(arguments)
    try:
        check_folder(options.folder)
        if options.name != NAME:
            check_name(options.name)
        write(options.name, options.folder, options.step)
    except (MistakeError, OSError) as error:
        print(f"rename.py: {error}", file=sys.stderr)
        return 2
    print(f"the device {options.name} is in {options.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
