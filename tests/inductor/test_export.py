# SPDX-License-Identifier: BSD-3-Clause
"""Exported programs of models on the device, as files of PyTorch's and of ONNX."""

from __future__ import annotations

import pytest

from support.programs import Program


@pytest.mark.timeout(600)
def test_onnx_runtime_has_the_numbers_of_a_model_on_the_device(
    run_python: Program, tmp_path
) -> None:
    path = tmp_path / "model.onnx"
    ended = run_python(f"""
        import warnings

        warnings.simplefilter("ignore")
        import onnxruntime
        import torch
        from torch import nn

        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3)).eval()
        model.to("openreg")
        x = torch.randn(4, 6)
        given = (x.to("openreg"),)
        program = torch.export.export(model, given)
        torch.export.save(program, {str(tmp_path / "model.pt2")!r})
        again = torch.export.load({str(tmp_path / "model.pt2")!r}).module()
        print(again(*given).equal(model(*given)), again(*given).device)

        torch.onnx.export(program, given, {str(path)!r}, dynamo=True, verbose=False)
        session = onnxruntime.InferenceSession({str(path)!r})
        (name,) = [each.name for each in session.get_inputs()]
        (y,) = session.run(None, {{name: x.numpy()}})
        print(torch.from_numpy(y).allclose(model(*given).cpu(), atol=1e-6))
    """)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[:1] == ["True openreg:0"]
    assert ended.stdout.splitlines()[-1] == "True"
