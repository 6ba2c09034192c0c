# SPDX-License-Identifier: BSD-3-Clause
"""The times of the works of one record on one device."""

from __future__ import annotations

from collections.abc import Iterable

from openreg_predict._costs.cost import predict_all
from openreg_predict._costs.interval import Interval
from openreg_predict._devices.description import DescribedDevice
from openreg_predict._works.work import Work

# Copies between host and device: a start, and a share of the bus; memory that is not
# pinned is first copied by the host.
_TRANSFER_START = 1.0e-5
_PINNED, _PAGEABLE = 0.8, 0.35
_BUS = 1.6e10  # bytes/s, of devices whose file has no pcie_bandwidth
_PEER = ("link_bandwidth", "pcie_bandwidth")


class Costs:
    """The times of works on a device; each is computed once."""

    def __init__(self, device: DescribedDevice, *, sheet_only: bool = False) -> None:
        self.device = device
        self.sheet_only = sheet_only
        self._known: dict[Work, Interval] = {}

    def prepare(self, works: Iterable[Work]) -> None:
        """Computes the times of many works together, which is faster."""
        new = [w for w in dict.fromkeys(works) if w not in self._known]
        new = [w for w in new if w.kind != "transfer"]
        times = predict_all(new, self.device, sheet_only=self.sheet_only, in_model=True)
        self._known |= dict(zip(new, times, strict=True))

    def __call__(self, work: Work) -> Interval:
        """Returns the time of a work."""
        found = self._known.get(work)
        if found is None:
            if work.kind == "transfer":
                found = self._transfer(work)
            else:
                (found,) = predict_all(
                    [work], self.device, sheet_only=self.sheet_only, in_model=True
                )
            self._known[work] = found
        return found

    def _transfer(self, work: Work) -> Interval:
        names = _PEER if work.facts["direction"] == "DtoD" else _PEER[1:]
        share = _PINNED if work.facts["pinned"] else _PAGEABLE
        if work.facts["direction"] == "DtoD":
            share = _PINNED
        rate = self.device.get(*names) or _BUS
        return Interval.around(_TRANSFER_START + work.read / (share * rate), 0.5, 2.0)
