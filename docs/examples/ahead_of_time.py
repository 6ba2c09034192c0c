# SPDX-License-Identifier: BSD-3-Clause
"""A model that is compiled ahead of time and loaded on two devices."""

import tempfile

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Softmax(-1)).eval()
x = torch.randn(3, 4)
expected = model(x)

batch = torch.export.Dim("batch", min=2, max=64)
program = torch.export.export(
    model.to("openreg"), (x.to("openreg"),), dynamic_shapes=({0: batch},)
)
with tempfile.TemporaryDirectory() as folder:
    path = torch._inductor.aoti_compile_and_package(
        program, package_path=f"{folder}/model.pt2"
    )
    for index in (0, 1):
        loaded = torch._inductor.aoti_load_package(path, device_index=index)
        y = loaded(x.to(f"openreg:{index}"))
        print(y.device, y.cpu().allclose(expected))
# prints: openreg:0 True
# prints: openreg:1 True
