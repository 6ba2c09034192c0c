# SPDX-License-Identifier: BSD-3-Clause
"""The device for the Trainer and Fabric of the package ``lightning``.

Lightning supports CUDA, MPS and XLA, and has registries for other devices.
:func:`register` adds openreg::

    from lightning.pytorch import Trainer
    from torch_openreg.integrations import lightning as openreg_lightning

    openreg_lightning.register()
    trainer = Trainer(accelerator="openreg", devices=2, strategy="ddp_openreg")

Objects work without the registries. For one device::

    from lightning.pytorch import Trainer
    from lightning.pytorch.plugins import MixedPrecision
    from lightning.pytorch.strategies import SingleDeviceStrategy
    from torch_openreg.integrations.lightning import OpenRegAccelerator

    trainer = Trainer(
        strategy=SingleDeviceStrategy("openreg:0", accelerator=OpenRegAccelerator()),
        plugins=[MixedPrecision("bf16-mixed", "openreg")],
    )

Fabric accepts the same names and classes, and ``OpenRegFabricDDPStrategy``.
"""

from __future__ import annotations

from typing import Any

import torch

from torch_openreg import openreg

from ._library import check_parameters, require

require(
    "lightning",
    " (pytorch-lightning and lightning-fabric have other classes, and do not take "
    "this one)",
)

from lightning.fabric.accelerators import (  # noqa: E402
    ACCELERATOR_REGISTRY as _FABRIC_ACCELERATORS,
)
from lightning.fabric.strategies import (  # noqa: E402
    STRATEGY_REGISTRY as _FABRIC_STRATEGIES,
)
from lightning.fabric.strategies import (  # noqa: E402
    DDPStrategy as _FabricDDPStrategy,
)
from lightning.pytorch.accelerators import (  # noqa: E402
    Accelerator,
    AcceleratorRegistry,
)
from lightning.pytorch.strategies import DDPStrategy, StrategyRegistry  # noqa: E402

__all__ = [
    "OpenRegAccelerator",
    "OpenRegDDPStrategy",
    "OpenRegFabricDDPStrategy",
    "register",
    "unregister",
]

_TESTED = "2.6.6"


class OpenRegAccelerator(Accelerator):  # type: ignore[misc] # mypy skips lightning
    """Lightning's interface to a device, for ``device="openreg"``.

    Trainer and Fabric accept it as the ``accelerator`` of a strategy for one device.
    """

    def setup_device(self, device: torch.device) -> None:
        """Makes the device current in this process.

        Args:
            device: One of the simulated accelerators.

        Raises:
            ValueError: If the device is of another type.
        """
        if device.type != "openreg":
            raise ValueError(
                f"OpenRegAccelerator: device is {device}, and must be of the type "
                "openreg, such as SingleDeviceStrategy('openreg:0', "
                "accelerator=OpenRegAccelerator())"
            )
        openreg.set_device(device)

    def get_device_stats(self, device: Any) -> dict[str, Any]:
        """Returns the memory statistics of the device, in bytes and counts.

        Args:
            device: A device, or its index.
        """
        return openreg.memory_stats(device)

    def teardown(self) -> None:
        """Releases unused memory."""
        openreg.empty_cache()

    @staticmethod
    def parse_devices(devices: int | str | list[int]) -> list[int]:
        """Returns the device indices for the argument ``devices`` of a Trainer.

        Args:
            devices: The number of devices, starting with the first; -1, "-1" or "auto"
                for all; a list of indices, or its text, such as "0, 1".

        Raises:
            ValueError: If the devices do not exist.
        """
        count = openreg.device_count()
        indices: list[int]
        try:
            if devices in (-1, "-1", "auto"):
                indices = list(range(count))
            elif isinstance(devices, str) and "," in devices:
                indices = [int(index) for index in devices.split(",") if index.strip()]
            elif isinstance(devices, int | str):
                indices = list(range(int(devices)))
            else:
                indices = [int(index) for index in devices]
        except ValueError:
            indices = []
        if not indices or len(set(indices)) != len(indices):
            known = False
        else:
            known = all(0 <= index < count for index in indices)
        if not known:
            raise ValueError(
                f"OpenRegAccelerator: devices is {devices!r}, and must be a number "
                f"from 1 to {count}, -1 or 'auto' for all, or different indices from "
                f"0 to {count - 1}"
            )
        return indices

    @staticmethod
    def get_parallel_devices(devices: list[int]) -> list[torch.device]:
        """Returns the devices with these indices."""
        return [torch.device("openreg", index) for index in devices]

    @staticmethod
    def auto_device_count() -> int:
        """Returns the number of devices."""
        return openreg.device_count()

    @staticmethod
    def is_available() -> bool:
        """Returns whether there is a device."""
        return openreg.is_available()

    @staticmethod
    def name() -> str:
        """Returns the device type."""
        return "openreg"


class OpenRegDDPStrategy(DDPStrategy):  # type: ignore[misc] # mypy skips lightning
    """DDP for Lightning's Trainer on devices of ``OpenRegAccelerator``.

    Lightning's own class wraps the model on a CUDA stream unless the device is the CPU.
    The arguments are the same as for Lightning's class.
    """

    def determine_ddp_device_ids(self) -> None:
        """Returns None, so that DDP uses the model's device."""
        return


class OpenRegFabricDDPStrategy(_FabricDDPStrategy):  # type: ignore[misc]
    """DDP for Lightning's Fabric, like :class:`OpenRegDDPStrategy` for the Trainer."""

    def _determine_ddp_device_ids(self) -> None:
        return


check_parameters(
    "lightning",
    _TESTED,
    "DDPStrategy.determine_ddp_device_ids",
    getattr(DDPStrategy, "determine_ddp_device_ids", None),
    ["self"],
)
check_parameters(
    "lightning",
    _TESTED,
    "fabric.strategies.DDPStrategy._determine_ddp_device_ids",
    getattr(_FabricDDPStrategy, "_determine_ddp_device_ids", None),
    ["self"],
)

_ENTRIES: list[tuple[Any, str, type]] = [
    (AcceleratorRegistry, "openreg", OpenRegAccelerator),
    (_FABRIC_ACCELERATORS, "openreg", OpenRegAccelerator),
    (StrategyRegistry, "ddp_openreg", OpenRegDDPStrategy),
    (_FABRIC_STRATEGIES, "ddp_openreg", OpenRegFabricDDPStrategy),
]


def register() -> None:
    """Registers the accelerator ``"openreg"`` and the strategy ``"ddp_openreg"``.

    Trainer and Fabric then accept the names in this process. A second call registers
    the same classes again.
    """
    for registry, name, made in _ENTRIES:
        registry.register(name, made, description=made.__name__, override=True)


def unregister() -> None:
    """Undoes :func:`register`."""
    for registry, name, _ in _ENTRIES:
        if name in registry:
            registry.remove(name)
