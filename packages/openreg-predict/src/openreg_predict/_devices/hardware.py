# SPDX-License-Identifier: BSD-3-Clause
"""The properties of a device that cost models read: rates, caches, clock, power."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from openreg_predict._devices.description import DescribedDevice

# Process nodes in nm: the energy of an operation falls with them.
_NODES: Mapping[str, float] = {
    "pascal": 16, "volta": 12, "turing": 12, "ampere": 7, "ada": 4.5, "hopper": 4.5,
    "blackwell": 4, "blackwell-rtx": 4, "cdna1": 7, "cdna2": 6, "cdna3": 5,
    "rdna3": 5, "rdna4": 4,
}  # fmt: skip
_MODERN_NODE = 5.0
# Training rows show no gain of vector operations from 16 nm to 7 nm.
_VECTOR_NODE = 7.0
# The order of architectures: libraries treat close ones alike. Ada runs the kernels of
# products that are made for Ampere, and not the kernels for Hopper.
_ORDER: Mapping[str, float] = {
    "pascal": 0, "volta": 1.5, "turing": 2, "ampere": 3, "ada": 3.4, "hopper": 4.5,
    "blackwell": 5.5, "blackwell-rtx": 5.5, "cdna1": 20, "cdna2": 20.5, "cdna3": 22,
}  # fmt: skip
# Ampere's boards with GDDR memory are made in another process than the A100.
_NODE_OF_GDDR_AMPERE = 8.0
# Devices without a stated cache get this share of their bandwidth, in seconds.
_L2_SECONDS = 8e-6


@dataclass(frozen=True)
class Hardware:
    """Properties of a device that cost models read; missing ones are derived.

    Attributes:
        vendor: The manufacturer.
        generation: The architecture.
        vector: Operations per second of the vector units, in float32.
        bandwidth: Bytes per second of the memory.
        l2: Bytes of the shared cache.
        units: Multiprocessors or compute units.
        clock: Hertz.
        power: Watts of the board.
        node: Process node in nm.
        vector_node: The same, limited to where vector operations became cheaper.
        link: Bytes per second to other devices of the host, or 0.
        network: Bytes per second to other hosts, or 0.
        domain: Devices that the link joins.
        derived: Names of the fields that the device lacks.
    """

    vendor: str
    generation: str
    vector: float
    bandwidth: float
    l2: float
    units: float
    clock: float
    power: float
    node: float
    vector_node: float
    link: float
    network: float
    pcie: float
    domain: float
    derived: tuple[str, ...]


@lru_cache(maxsize=256)
def hardware(source: DescribedDevice) -> Hardware:
    """Returns what cost models read of a device.

    Args:
        source: The device.
    """
    derived = []

    def get(name: str, default: float) -> float:
        value = source.get(name)
        if value is None:
            derived.append(name)
            return default
        return value

    vector = source["vector_f32"]
    bandwidth = source["memory_bandwidth"]
    clock = get("clock", 1.5e9)
    units = get("units", max(round(vector / (clock * 256)), 1))
    hbm = bandwidth >= 1.2e12
    node = _NODES.get(source.generation, _MODERN_NODE)
    if source.generation == "ampere" and not hbm:
        node = _NODE_OF_GDDR_AMPERE
    return Hardware(
        vendor=source.vendor,
        generation=source.generation,
        vector=vector,
        bandwidth=bandwidth,
        l2=get("l2_capacity", bandwidth * _L2_SECONDS),
        units=units,
        clock=clock,
        power=get("power", 1e6),
        node=node,
        vector_node=min(node, _VECTOR_NODE),
        link=source.get("link_bandwidth") or 0.0,
        network=source.get("network_bandwidth") or 0.0,
        pcie=source.get("pcie_bandwidth") or 1.6e10,
        domain=source.get("link_domain") or 1.0,
        derived=tuple(derived),
    )


def distance(generation: str, other: str) -> float:
    """Returns how far apart two generations are; far for unknown ones."""
    if generation == other:
        return 0.0
    if generation not in _ORDER or other not in _ORDER:
        return 100.0
    return abs(_ORDER[generation] - _ORDER[other])


def matrix_rate(device: DescribedDevice, dtype: str) -> tuple[float, bool]:
    """Returns the rate of matrix products of a dtype, and whether matrix units do it.

    Args:
        device: The device.
        dtype: The dtype of the operands.
    """
    names = {
        "f64": ("matrix_f64", "vector_f64"),
        "f32": ("matrix_f32", "vector_f32"),
        "tf32": ("matrix_tf32", "matrix_f32", "vector_f32"),
        "f16": ("matrix_f16", "matrix_bf16", "vector_f16", "vector_f32"),
        "bf16": ("matrix_bf16", "matrix_f16", "vector_f32"),
        "f8": ("matrix_f8", "matrix_bf16", "matrix_f16", "vector_f32"),
        "i8": ("matrix_i8", "matrix_f16", "vector_f32"),
    }.get("f8" if dtype == "fp8" else dtype, ("vector_f32",))
    for name in names:
        value = device.get(name)
        if value is not None:
            return value, name.startswith("matrix")
    return device["vector_f32"] / (32 if dtype == "f64" else 1), False


def vector_rate(device: DescribedDevice, dtype: str) -> float:
    """Returns the rate of operations of the vector units, in float32."""
    return device["vector_f32"] / (32 if dtype == "f64" else 1)
