# SPDX-License-Identifier: BSD-3-Clause
"""A stream that does not wait for another stream."""

import re

import torch
from torch.openreg import sanitizer

side = torch.Stream("openreg")

try:
    with sanitizer.enabled():
        x = torch.arange(5, device="openreg")
        x.square_()
        with side:
            print(x.max().item())
except sanitizer.UnsynchronizedAccessError as error:
    report = re.sub(
        r"/\S*/|0x\w+", "...", str(error)
    )  # without directories and addresses
    print(report.replace(str(side.stream_id), "7"))
# prints: possible data race: unordered accesses to the memory at address ...:
# prints:   aten::max(Tensor self) -> Tensor
# prints:     reading from self, on stream 7 of openreg:0
# prints:     ...sanitizer.py:16: print(x.max().item())
# prints: and earlier
# prints:   aten::pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)
# prints:     writing to self, on the default stream of openreg:0
# prints:     ...sanitizer.py:14: x.square_()
# prints: allocated at ...sanitizer.py:13: x = torch.arange(5, device="openreg")
# prints: Make one stream wait for the other, with wait_stream() or an event.
