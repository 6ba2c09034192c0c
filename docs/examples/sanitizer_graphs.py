# SPDX-License-Identifier: BSD-3-Clause
"""A race between a graph replay and a write to its input on another stream."""

import re

import torch
from torch.openreg import sanitizer

side = torch.Stream("openreg")

try:
    with sanitizer.enabled():
        x = torch.zeros(4, device="openreg")
        graph = torch.accelerator.Graph()
        with torch.Stream("openreg"), graph:
            y = x * 2
        graph.replay()
        with side:
            x.fill_(1)
except sanitizer.UnsynchronizedAccessError as error:
    report = re.sub(
        r"/\S*/|0x\w+", "...", str(error)
    )  # without directories and addresses
    print(report.replace(str(side.stream_id), "7"))
# prints: possible data race: unordered accesses to the memory at address ...:
# prints:   aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)
# prints:     writing to self, on stream 7 of openreg:0
# prints:     ...sanitizer_graphs.py:19: x.fill_(1)
# prints: and earlier
# prints:   aten::mul.Tensor(Tensor self, Tensor other) -> Tensor
# prints:     reading from self, on the default stream of openreg:0
# prints:     ...sanitizer_graphs.py:17: graph.replay()
# prints:     captured at ...sanitizer_graphs.py:16: y = x * 2
# prints: allocated at ...sanitizer_graphs.py:13: x = torch.zeros(4, device="openreg")
# prints: Make one stream wait for the other, with wait_stream() or an event.
