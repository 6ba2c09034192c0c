# SPDX-License-Identifier: BSD-3-Clause
"""Descriptions of devices: YAML files of fields with value, unit, kind and source."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import yaml  # type: ignore[import-untyped]

FOLDER = Path(__file__).parents[1] / "devices"
KINDS = ("datasheet", "derived", "measured", "made-up")
# Unit and meaning of each field. Rates are dense, with sums in float32.
FIELDS: Mapping[str, tuple[str, str]] = {
    "vector_f32": ("flop/s", "float32 operations of the vector units"),
    "vector_f16": ("flop/s", "float16 operations of the vector units"),
    "vector_f64": ("flop/s", "float64 operations of the vector units"),
    "matrix_f64": ("flop/s", "float64 operations of the matrix units"),
    "matrix_f32": ("flop/s", "float32 operations of the matrix units"),
    "matrix_tf32": ("flop/s", "TF32 operations of the matrix units"),
    "matrix_f16": ("flop/s", "float16 operations of the matrix units"),
    "matrix_bf16": ("flop/s", "bfloat16 operations of the matrix units"),
    "matrix_f8": ("flop/s", "float8 operations of the matrix units"),
    "matrix_i8": ("flop/s", "int8 operations of the matrix units"),
    "achieved_bf16": ("flop/s", "the highest measured rate of a bfloat16 product"),
    "memory_bandwidth": ("byte/s", "bandwidth of the device memory"),
    "memory_capacity": ("byte", "size of the device memory"),
    "ecc_memory": ("byte", "device memory that error correction reserves by default"),
    "l2_capacity": ("byte", "size of the cache that all units share"),
    "units": ("count", "streaming multiprocessors or compute units"),
    "clock": ("Hz", "clock at which the rates above hold"),
    "power": ("W", "power limit of the board"),
    "link_bandwidth": ("byte/s", "bandwidth to the other devices of a host, one way"),
    "link_domain": ("count", "devices that the link joins"),
    "peer_domain": ("count", "devices of a host that access each other's memory"),
    "network_bandwidth": ("byte/s", "bandwidth to other hosts per device, one way"),
    "pcie_bandwidth": ("byte/s", "bandwidth between host and device, one way"),
    "shortest_kernel": ("s", "time of a kernel that does nothing"),
    "launch_time": ("s", "time from a launch until its kernel starts"),
    "host_per_operator": ("s", "host time of an eager operator"),
    "context_memory": ("byte", "memory of a context and its modules"),
    "workspace_memory": ("byte", "memory of the workspaces of libraries"),
    "collective_memory": ("byte", "memory of the buffers of a process group"),
    "price": ("USD/h", "price of an hour of one device"),
}
REQUIRED = ("vector_f32", "memory_bandwidth", "memory_capacity")
_HEAD = {
    "schema": int,
    "id": str,
    "name": str,
    "vendor": str,
    "generation": str,
    "note": str,
    "fields": dict,
    "sources": dict,
}
_OPTIONAL = {"note", "sources", "generation", "vendor"}
_KEYS = ("value", "unit", "kind", "source")


class DeviceFileError(ValueError):
    """A device file is not valid; the message has the file, the line and the field."""


@dataclass(frozen=True)
class Field:
    """One property of a device.

    Attributes:
        value: The value, in ``unit``.
        unit: The unit, as listed in ``FIELDS``.
        kind: ``datasheet``, ``derived``, ``measured`` or ``made-up``.
        source: Where the value is from, a key of the file's ``sources``.
    """

    value: float
    unit: str
    kind: str
    source: str


@dataclass(frozen=True, eq=False)
class DescribedDevice:
    """A described device; equal only to itself.

    Attributes:
        id: A short name such as ``h100-sxm``.
        name: The full name.
        vendor: The manufacturer; decides which libraries are assumed.
        generation: The architecture, such as ``hopper``.
        fields: The properties, by name.
        sources: The sources of the properties, by key.
        note: A remark, or an empty string.
        path: The file, or ``None``.
    """

    id: str
    name: str
    vendor: str
    generation: str
    fields: Mapping[str, Field]
    sources: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    path: Path | None = None

    def get(self, *names: str) -> float | None:
        """Returns the value of the first field that the device has, or ``None``."""
        return next((self.fields[n].value for n in names if n in self.fields), None)

    def __getitem__(self, name: str) -> float:
        """Returns the value of a field.

        Raises:
            KeyError: If the device does not have the field, with the line to add.
        """
        if name not in FIELDS:
            raise KeyError(f"{name!r} is not a field of devices: {_choices(FIELDS)}")
        if name not in self.fields:
            unit, meaning = FIELDS[name]
            raise KeyError(
                f"device {self.id} has no field {name} ({meaning}); add "
                f"'{name}: {{value: ..., unit: {unit}, kind: ..., source: ...}}'"
            )
        return self.fields[name].value

    @cached_property
    def sheet(self) -> DescribedDevice:
        """The same device without measured fields."""
        fields = {n: f for n, f in self.fields.items() if f.kind != "measured"}
        return replace(self, fields=fields)

    def scaled(self, **factors: float) -> DescribedDevice:
        """Returns the device with fields multiplied, such as ``memory_bandwidth=2``."""
        fields = dict(self.fields)
        for name, factor in factors.items():
            self[name]
            fields[name] = replace(
                fields[name], value=fields[name].value * factor, kind="made-up"
            )
        return replace(self, fields=fields)


def device_names() -> list[str]:
    """Returns the names of the devices that the package describes."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load_device(name_or_path: str | Path) -> DescribedDevice:
    """Reads a described device.

    Args:
        name_or_path: A name of :func:`device_names`, or a path of a YAML file.

    Raises:
        DeviceFileError: If the device is unknown, or its file is not valid.
    """
    known = FOLDER / f"{name_or_path}.yaml"
    if isinstance(name_or_path, str) and name_or_path in device_names():
        return _read(known)
    path = Path(name_or_path)
    if not path.is_file():
        near = difflib.get_close_matches(str(name_or_path), device_names(), 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise DeviceFileError(
            f"device {str(name_or_path)!r} is neither a file nor one of "
            f"{', '.join(device_names())}{hint}"
        )
    return _read(path)


def _read(path: Path) -> DescribedDevice:
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DeviceFileError(f"{path}: not valid YAML: {error}") from error
    return _Reader(path).device(root)


class _Reader:
    """Checks the nodes of one file; errors name the line of a node."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fail(self, node: yaml.Node | None, what: str) -> DeviceFileError:
        line = node.start_mark.line + 1 if node is not None else 1
        return DeviceFileError(f"{self.path}:{line}: {what}")

    def entries(self, node: yaml.Node | None, what: str) -> dict[str, yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            raise self.fail(node, f"{what} must be a mapping of names to values")
        found: dict[str, yaml.Node] = {}
        for key, value in node.value:
            if key.value in found:
                raise self.fail(key, f"{what} has {key.value!r} twice")
            found[key.value] = value
        return found

    def plain(self, node: yaml.Node) -> object:
        loader = yaml.SafeLoader("")
        try:
            return loader.construct_object(node, deep=True)
        finally:
            loader.dispose()

    def device(self, root: yaml.Node | None) -> DescribedDevice:
        head = self.entries(root, "a device file")
        for key, node in head.items():
            if key not in _HEAD:
                raise self.fail(node, f"unknown entry {key!r}: {_choices(_HEAD)}")
            if not isinstance(value := self.plain(node), _HEAD[key]):
                raise self.fail(
                    node, f"{key} must be a {_HEAD[key].__name__}, got {value!r}"
                )
        for key in _HEAD.keys() - _OPTIONAL - head.keys():
            raise self.fail(root, f"the entry {key!r} is missing")
        if (schema := self.plain(head["schema"])) != 1:
            raise self.fail(head["schema"], f"schema must be 1, got {schema!r}")
        listed = self.entries(head["sources"], "sources") if "sources" in head else {}
        sources = {key: str(self.plain(node)) for key, node in listed.items()}
        nodes = self.entries(head["fields"], "fields")
        fields = {n: self.field(n, node, sources) for n, node in nodes.items()}
        for name in REQUIRED:
            if name not in fields:
                unit, meaning = FIELDS[name]
                raise self.fail(
                    head["fields"],
                    f"the field {name} ({meaning}, in {unit}) is missing",
                )
        text = {k: str(self.plain(n)) for k, n in head.items()}
        return DescribedDevice(
            id=text["id"],
            name=text["name"],
            vendor=text.get("vendor", ""),
            generation=text.get("generation", ""),
            fields=fields,
            sources=sources,
            note=text.get("note", ""),
            path=self.path,
        )

    def field(self, name: str, node: yaml.Node, sources: Mapping[str, str]) -> Field:
        if name not in FIELDS:
            raise self.fail(node, f"unknown field {name!r}: {_choices(FIELDS, name)}")
        unit = FIELDS[name][0]
        parts = self.entries(node, f"field {name}")
        for key, part in parts.items():
            if key not in _KEYS:
                raise self.fail(part, f"{name} has unknown {key!r}: {_choices(_KEYS)}")
        for key in _KEYS:
            if key not in parts:
                raise self.fail(node, f"{name} has no {key!r}: {_choices(_KEYS)}")
        value = self.plain(parts["value"])
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            hint = " (YAML reads 1e12 as text: write 1.0e+12)" * (
                isinstance(value, str)
            )
            raise self.fail(
                parts["value"],
                f"{name} must be a number in {unit}, got {value!r}{hint}",
            )
        if not (math.isfinite(value) and value > 0):
            raise self.fail(
                parts["value"], f"{name} must be positive and finite, got {value!r}"
            )
        if (found := self.plain(parts["unit"])) != unit:
            raise self.fail(
                parts["unit"], f"the unit of {name} must be {unit}, got {found!r}"
            )
        kind = self.plain(parts["kind"])
        if kind not in KINDS:
            raise self.fail(
                parts["kind"], f"the kind of {name} is {kind!r}: {_choices(KINDS)}"
            )
        source = str(self.plain(parts["source"]))
        if sources and source not in sources:
            raise self.fail(
                parts["source"],
                f"the source of {name} is {source!r}: {_choices(sources)}",
            )
        return Field(float(value), unit, str(kind), source)


def _choices(names: Iterable[str], wrong: str = "") -> str:
    names = list(names)
    near = difflib.get_close_matches(wrong, names, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"accepted are {', '.join(names)}{hint}"
