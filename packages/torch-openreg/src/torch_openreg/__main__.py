# SPDX-License-Identifier: BSD-3-Clause
"""Command line: ``python -m torch_openreg`` lists what is installed and checks it.

``python -m torch_openreg mechanisms`` lists the mechanisms of the registration, and
``python -m torch_openreg profile script.py`` runs a script and reports the use of the
devices.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module, metadata
from pathlib import Path

import torch_openreg
from torch_openreg._mechanisms import mechanisms

_PACKAGES = (
    "torch-openreg",
    "openreg-aten",
    "openreg-amp",
    "openreg-distributed",
    "openreg-inductor",
    "openreg-profiler",
    "openreg-runtime",
    "torch",
)


def _versions() -> Iterator[tuple[str, str]]:
    for package in _PACKAGES:
        try:
            yield package, metadata.version(package)
        except metadata.PackageNotFoundError:
            yield package, "not installed"
    yield "Python", platform.python_version()


def _devices() -> Iterator[tuple[str, str, str]]:
    import openreg_runtime

    for index in range(openreg_runtime.device_count()):
        device = openreg_runtime.Device(index)
        total, free = device.total_memory / 2**30, device.free_memory / 2**30
        yield str(index), device.name, f"{total:.2f} GiB, {free:.2f} GiB free"


def _settings() -> Iterator[tuple[str, str, str, str]]:
    import openreg_runtime

    for setting in openreg_runtime.settings():
        yield setting.name, setting.value, setting.source, setting.description
    name = "TORCH_DEVICE_BACKEND_AUTOLOAD"  # PyTorch's own
    source = "environment" if name in os.environ else "default"
    yield name, os.environ.get(name) or "1", source, "whether torch loads backends"


def _print_table(title: str, rows: Iterable[Sequence[str]]) -> None:
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    print(title)
    for row in table:
        print("  " + "  ".join(map(str.ljust, row, widths)).rstrip())


def _print_mechanisms() -> None:
    for mechanism in mechanisms():
        print(f"{mechanism.name} ({mechanism.state}): {mechanism.summary}")
        print(f"  without it: {mechanism.without}")
        if mechanism.source:
            print(f"  code: {mechanism.source}")


def _status() -> int:
    _print_table("versions", _versions())
    _print_table("devices", _devices())
    _print_table("settings", _settings())
    listed = mechanisms()
    counts = Counter(mechanism.state for mechanism in listed)
    off = ", ".join(m.name for m in listed if m.state == "off") or "none"
    print(f"mechanisms\n  {counts['on']} on, {counts['planned']} planned, off: {off}")

    from torch_openreg import _check

    failed = 0
    print("self-check")
    for name, error in _check.run():
        failed += error is not None
        lines = str(error).strip().splitlines() or [repr(error)]
        print(f"  {name}: {'ok' if error is None else 'failed: ' + lines[0]}")
    return 1 if failed else 0


def _profile(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m torch_openreg profile")
    parser.add_argument("--json", type=Path, help="file for the report as JSON")
    parser.add_argument(
        "--html", type=Path, help="file for the report as a page with plots"
    )
    parser.add_argument(
        "--predict",
        metavar="DEVICE",
        help="also predict time and memory on a described device, in a second run of "
        "the script; needs openreg-predict",
    )
    parser.add_argument("script", type=Path)
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, help="arguments of the script"
    )
    options = parser.parse_args(words)
    if not options.script.is_file():
        parser.error(f"script {options.script} is not a file")
    if options.predict is not None:
        try:
            predict = import_module("openreg_predict")
        except ModuleNotFoundError as error:
            if error.name != "openreg_predict":
                raise
            parser.error(
                "argument --predict: needs openreg-predict, which is not installed; "
                "run: pip install openreg-predict"
            )
        predict.load_device(options.predict)  # an error before the script runs

    from openreg_profiler import _run

    report = _run.run(
        options.script,
        options.arguments,
        json_file=options.json,
        html_file=options.html,
    )
    print(report.table())
    if options.predict is None:
        return 0
    print(f"\nprediction for {options.predict}", flush=True)
    # In another process, because a recording would slow down the profiled run.
    words = [sys.executable, "-m", "openreg_predict", "run"]
    words += ["--device", options.predict, str(options.script), *options.arguments]
    return subprocess.run(words, check=False).returncode


def main() -> int:
    """Runs the command.

    Returns:
        The exit status: 1 if an environment variable is invalid, a package is missing,
        or a part of the self-check failed.
    """
    parser = argparse.ArgumentParser(prog="python -m torch_openreg")
    parser.add_argument(
        "command",
        nargs="?",
        default="status",
        choices=["status", "mechanisms", "profile", "hunt"],
        help="status: versions, devices, settings and a self-check; "
        "mechanisms: each way in which PyTorch lets the device in, on, off or planned; "
        "profile: runs a script, and reports how well the devices were used; "
        "hunt: runs a test suite in each mode that finds bugs",
    )
    parser.add_argument(
        "rest", nargs=argparse.REMAINDER, help="profile --help, hunt --help"
    )
    options = parser.parse_args()
    command: str = options.command
    if options.rest and command not in ("profile", "hunt"):
        parser.error(f"unrecognized arguments: {' '.join(options.rest)}")
    try:
        torch_openreg.register()
        if command == "status":
            return _status()
        if command == "profile":
            return _profile(options.rest)
        if command == "hunt":
            from torch_openreg import hunt

            return hunt.main(options.rest)
        _print_mechanisms()
    except (ImportError, RuntimeError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
