# SPDX-License-Identifier: BSD-3-Clause
"""``openreg-predict run``, ``compare`` and ``fits``: predictions for a script."""

from __future__ import annotations

import argparse
import ast
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from openreg_predict._clock.ranks import RanksError
from openreg_predict._commands._errors import CommandError, device_of
from openreg_predict._devices.description import DescribedDevice
from openreg_predict._predictions.predict import predict_ranks
from openreg_predict._predictions.record import Record, record
from openreg_predict._predictions.remedies import remedies_of, remedies_table
from openreg_predict._records.record import RecordFileError
from openreg_predict._reports.text import memory_table


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the commands."""
    run = commands.add_parser("run", help="predict time and memory of a script")
    run.add_argument("--device", required=True, help="a name, or a path of a YAML file")
    run.add_argument("--trace", type=Path, help="write a trace for Perfetto")
    run.add_argument("--html", type=Path, help="write a page with plots")
    run.add_argument(
        "--ranks",
        type=int,
        metavar="N",
        help="run the script in N processes, as torchrun does, and predict all of them",
    )
    _add_script(run)
    run.set_defaults(run=_run)
    compare = commands.add_parser("compare", help="compare devices for a script")
    compare.add_argument(
        "--devices", required=True, help="names or paths, with commas between them"
    )
    _add_script(compare)
    compare.set_defaults(run=_compare)
    fits = commands.add_parser(
        "fits",
        help="check whether a script fits into memory, and list remedies",
    )
    fits.add_argument(
        "--device", required=True, help="a name, or a path of a YAML file"
    )
    _add_script(fits)
    fits.set_defaults(run=_fits)


def _add_script(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dry", action="store_true", help="compute nothing; values are assumed"
    )
    parser.add_argument("--json", type=Path, help="write the prediction as JSON")
    parser.add_argument("--record", type=Path, help="write the record of the run")
    parser.add_argument(
        "--name",
        choices=["auto", "openreg", "cuda"],
        default="auto",
        help="the name of the device in the script; auto looks for it in the script",
    )
    parser.add_argument(
        "--sheet-only", action="store_true", help="ignore measured fields of devices"
    )
    parser.add_argument(
        "--host",
        type=float,
        metavar="SECONDS",
        help="host time of an eager operator; 6e-6 by default",
    )
    parser.add_argument("script", help="a script, or a record that --record wrote")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)


def _run(options: argparse.Namespace) -> int:
    device = device_of(options.device)
    if options.ranks is not None or Path(options.script).is_dir():
        return _run_ranks(options, device)
    record = _record_of(options)
    prediction = record.predict(device, **_options(options))
    print(prediction.table())
    if options.json is not None:
        _write(options.json, prediction.to_dict())
    if options.trace is not None:
        prediction.trace(options.trace)
    if options.html is not None:
        prediction.html(options.html)
    return 0


def _run_ranks(options: argparse.Namespace, device: DescribedDevice) -> int:
    """Predicts a script on several ranks, or a folder with their records."""
    if options.ranks is not None and options.ranks < 1:
        raise CommandError(f"argument --ranks: {options.ranks} is not 1 or more")
    if options.ranks is not None and options.dry:
        raise CommandError(
            "argument --ranks: a dry run has one rank, which stands for the others; "
            "leave out --dry"
        )
    with TemporaryDirectory() as temporary:
        if Path(options.script).is_dir():
            folder = Path(options.script)
        else:
            folder = options.record or Path(temporary)
            _record_ranks(options, folder)
        records = records_in(folder)
    try:
        prediction = predict_ranks(records, device, **_options(options))
    except RanksError as error:
        raise CommandError(f"argument script: {error}") from error
    print(prediction.table())
    if options.json is not None:
        _write(options.json, prediction.to_dict())
    if options.trace is not None:
        prediction.slowest.trace(options.trace)
    if options.html is not None:
        prediction.slowest.html(options.html)
    return 0


def record_of_rank(folder: Path, rank: int) -> Path:
    """Returns the file of a rank's record."""
    return folder / f"rank{rank}.jsonl"


def records_in(folder: Path) -> list[Record]:
    """Reads the records of all ranks."""
    files: list[Path] = []
    while (file := record_of_rank(folder, len(files))).is_file():
        files.append(file)
    if not files:
        raise CommandError(f"argument script: {str(folder)!r} has no rank0.jsonl")
    try:
        return [Record.load(each) for each in files]
    except RecordFileError as error:
        raise CommandError(f"argument script: {error}") from error


def _record_ranks(options: argparse.Namespace, folder: Path) -> None:
    """Runs the script on each rank; each writes its record to the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("rank*.jsonl"):  # of a run with more ranks
        old.unlink()
    script = _script_of(options)
    name = options.name
    if name == "auto":
        name = _name_in(script, options.arguments)
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    words = [sys.executable, *launch, str(options.ranks), "-m"]
    words += ["openreg_predict._commands.rank", str(folder)]
    done = subprocess.run(
        [*words, str(script), *options.arguments],
        env={**os.environ, "OPENREG_DEVICE": name},
        check=False,
    )
    if done.returncode:
        raise CommandError(f"{script}: a rank ended with {done.returncode}")


def _compare(options: argparse.Namespace) -> int:
    devices = [device_of(each) for each in options.devices.split(",")]
    record = _record_of(options)
    result = record.compare(devices, **_options(options))
    print(result.table())
    if options.json is not None:
        _write(options.json, result.to_dict())
    return 0


def _fits(options: argparse.Namespace) -> int:
    """Prints the memory of a script; the status is 1 if it does not fit."""
    device: DescribedDevice = device_of(options.device)
    record = _record_of(options)
    prediction = record.predict(device, **_options(options))
    print(memory_table(prediction))
    remedies = remedies_of(prediction)
    print(remedies_table(prediction, remedies))
    if options.json is not None:
        values = {
            "device": device.id,
            "fits": prediction.fits,
            "memory": [each.to_dict() for each in prediction.memory],
            "remedies": [each._asdict() for each in remedies],
        }
        _write(options.json, values)
    return 0 if prediction.fits else 1


def _options(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "sheet_only": options.sheet_only,
        "host_per_operator": options.host,
        "find_steps": True,
    }


def _write(path: Path, values: object) -> None:
    path.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


def _record_of(options: argparse.Namespace) -> Record:
    """Runs the script, or reads a record."""
    path = _script_of(options)
    if path.suffix != ".py":
        try:
            return Record.load(path)
        except RecordFileError as error:
            raise CommandError(f"argument script: {error}") from error
    _choose_name(options.name, path, options.arguments)
    return run_script(path, options.arguments, dry=options.dry, save=options.record)


def _script_of(options: argparse.Namespace) -> Path:
    path = Path(options.script)
    if not path.is_file():
        raise CommandError(f"argument script: {options.script!r} is not a file")
    return path


def run_script(
    path: Path, arguments: list[str], *, dry: bool, save: Path | None = None
) -> Record:
    """Runs a script as the main program, and records it.

    Args:
        path: The script.
        arguments: Its arguments.
        dry: Whether to compute nothing.
        save: Where to write the record.

    Raises:
        CommandError: If the script ends with a status other than 0.
    """
    before, folders = sys.argv, list(sys.path)
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.resolve().parent))
    try:
        with record(dry=dry) as result:
            try:
                runpy.run_path(str(path), run_name="__main__")
            except SystemExit as end:
                if end.code:
                    raise CommandError(f"{path} ended with {end.code!r}") from end
    finally:
        sys.argv, sys.path[:] = before, folders
    if save is not None:
        result.save(save)
    return result


def _choose_name(name: str, path: Path, arguments: list[str]) -> None:
    """Makes the device available under the name that the script uses.

    The name is decided when PyTorch is loaded, so the command starts itself again.
    """
    if name == "auto":
        name = _name_in(path, arguments)
    if os.environ.get("OPENREG_DEVICE", "openreg") == name:
        return
    os.environ["OPENREG_DEVICE"] = name
    os.execv(sys.executable, [sys.executable, "-m", "openreg_predict", *sys.argv[1:]])


def _name_in(path: Path, arguments: list[str]) -> str:
    """Returns ``cuda`` if a script or its arguments name it, otherwise ``openreg``."""
    words = [word.partition(":")[0] for word in arguments]
    for each in ("openreg", "cuda"):
        if each in words:
            return each
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    names = {
        node.value.partition(":")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return "cuda" if "cuda" in names and "openreg" not in names else "openreg"
