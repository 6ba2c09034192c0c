# SPDX-License-Identifier: BSD-3-Clause
"""Merges wheels that were built for different torches into one wheel per package.

    python tools/merge_wheels.py build/torch_2_13 build/torch_2_14 --output dist

Each build writes its libraries to its own folder, such as ``torch_2_14``, and all other
files must be equal. Wheels of different platforms or Pythons stay separate.
The program ``wheel`` (a package on PyPI) reads the wheels and writes the result.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path


def _run_wheel(command: str, source: Path, target: Path) -> None:
    """Runs ``wheel pack`` or ``wheel unpack`` without its messages."""
    program = [sys.executable, "-m", "wheel", command, str(source)]
    subprocess.run(
        [*program, "--dest", str(target)], check=True, stdout=subprocess.DEVNULL
    )


def merge(wheels: Sequence[Path], output: Path) -> Path:
    """Merges wheels with the same file name.

    Args:
        wheels: The wheels, one per torch.
        output: The folder for the merged wheel; it is created if it does not exist.

    Returns:
        The merged wheel.

    Raises:
        ValueError: If the names differ, or a file differs between two wheels.
    """
    if len(names := {wheel.name for wheel in wheels}) != 1:
        raise ValueError(f"the names of the wheels differ: {', '.join(sorted(names))}")
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        merged = Path(folder, "merged")
        for number, wheel in enumerate(wheels):
            _run_wheel("unpack", wheel, Path(folder, str(number)))
            (content,) = Path(folder, str(number)).iterdir()
            for file in (path for path in content.rglob("*") if path.is_file()):
                target = merged / file.relative_to(content)
                if file.name == "RECORD" and file.parent.suffix == ".dist-info":
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.touch()  # written again by `wheel pack`
                elif not target.exists():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(file, target)
                elif target.read_bytes() != file.read_bytes():
                    raise ValueError(
                        f"{target.relative_to(merged)} differs between {wheels[0]} and "
                        f"{wheel}: a file that depends on torch belongs in the folder "
                        "of its torch, and all builds need the same build tools"
                    )
        _run_wheel("pack", merged, output)
    return output / wheels[0].name


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Merge wheels of several torches.")
    parser.add_argument("folders", nargs="+", type=Path, help="one per torch")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args(argv)
    groups = defaultdict(list)
    for folder in arguments.folders:
        for wheel in sorted(folder.glob("*.whl")):
            groups[wheel.name].append(wheel)
    if not groups:
        parser.error(f"no wheel in {', '.join(map(str, arguments.folders))}")
    for wheels in groups.values():
        try:
            print(merge(wheels, arguments.output))
        except ValueError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
