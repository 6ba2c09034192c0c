# SPDX-License-Identifier: BSD-3-Clause
"""``openreg-predict devices``: lists the described devices."""

from __future__ import annotations

import argparse

from openreg_predict._commands._errors import device_of
from openreg_predict._devices.description import FIELDS, DescribedDevice, device_names


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "devices", help="list the described devices, or the fields of one"
    )
    parser.add_argument("device", nargs="?", help="a name, or a path of a YAML file")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if options.device is not None:
        _print_fields(device_of(options.device))
        return 0
    head = ("device", "generation", "f32", "16 bit", "memory", "bandwidth", "power")
    line = "{:<18}{:<12}{:>8}{:>8}{:>10}{:>11}{:>8}"
    print(line.format(*head))
    print(line.format("", "", "Tflop/s", "Tflop/s", "GiB", "GB/s", "W"))
    for name in device_names():
        device = device_of(name)
        half = device.get("matrix_bf16", "matrix_f16", "vector_f16", "vector_f32") or 0
        print(
            line.format(
                name,
                device.generation,
                f"{device['vector_f32'] / 1e12:.1f}",
                f"{half / 1e12:.0f}",
                f"{device['memory_capacity'] / 2**30:.0f}",
                f"{device['memory_bandwidth'] / 1e9:.0f}",
                f"{device.get('power') or float('nan'):.0f}",
            )
        )
    return 0


def _print_fields(device: DescribedDevice) -> None:
    print(f"{device.id}: {device.name}, {device.vendor} {device.generation}")
    if device.note:
        print(device.note)
    for name, each in device.fields.items():
        value = f"{each.value:>14.6g} {each.unit:<8}{each.kind:<11}"
        print(f"{name:<18}{value}{FIELDS[name][1]}")
    for key, source in device.sources.items():
        print(f"  {key}: {source}")
