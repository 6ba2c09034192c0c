# SPDX-License-Identifier: BSD-3-Clause
"""The described host: what its threads need for the calls of a program."""

from __future__ import annotations

from dataclasses import dataclass

from openreg_predict._devices.description import DescribedDevice


@dataclass(frozen=True)
class Host:
    """Times of a host in seconds. A device file may have other ones.

    Attributes:
        operator: An eager operator of a device, with autograd.
        view: An operator that only makes a view.
        host_operator: An operator on small host tensors.
        compiled: The launch of a kernel of a compiled function.
        region: The call of a compiled function: guards and arguments.
        graph: The launch of a graph.
        launch: From a launch until its kernel starts on an idle device.
        in_graph: Between two kernels of a graph.
        synchronize: From the end of the work until a waiting host continues.
        event: Recording an event, or making a stream wait for one.
        thread: The start of a thread.
    """

    operator: float = 6.0e-6  # as fitted to training rows; 45 us on older servers
    view: float = 1.5e-6
    host_operator: float = 2.0e-6
    compiled: float = 2.5e-6
    region: float = 2.0e-5
    graph: float = 8.0e-6
    launch: float = 4.0e-6
    in_graph: float = 1.0e-6
    synchronize: float = 6.0e-6
    event: float = 1.5e-6
    thread: float = 5.0e-5

    @classmethod
    def of(cls, device: DescribedDevice, operator: float | None = None) -> Host:
        """Returns the host of a device: defaults, and the fields that its file has.

        Args:
            device: The described device.
            operator: The time of an eager operator; other times are scaled with it.
        """
        operator = operator or device.get("host_per_operator") or cls.operator
        scale = operator / cls.operator
        return cls(
            operator=operator,
            view=cls.view * scale,
            host_operator=cls.host_operator * scale,
            compiled=cls.compiled * scale,
            region=cls.region * scale,
            graph=cls.graph * scale,
            launch=device.get("launch_time") or cls.launch,
            synchronize=cls.synchronize * scale,
            event=cls.event * scale,
        )
