# SPDX-License-Identifier: BSD-3-Clause
"""A module moves to the device, and its parameters stay the same objects."""

from torch import nn

tokens, head = nn.Embedding(10, 4), nn.Linear(4, 10, bias=False)
head.weight = tokens.weight
before = tokens.weight
model = nn.Sequential(tokens, head).to("openreg")
tied, kept = head.weight is tokens.weight, tokens.weight is before
print(f"tied: {tied}, same parameter: {kept}")
# prints: tied: True, same parameter: True
# without it: tied: False, same parameter: False
