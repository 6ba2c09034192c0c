# SPDX-License-Identifier: BSD-3-Clause
"""Device-generic parts of PyTorch support this device without a registration."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

Output = Callable[..., str]


def test_tests_of_device_types_run_on_the_device(output: Output) -> None:
    source = """
    import unittest
    import torch
    from torch.testing._internal.common_device_type import (
        PrivateUse1TestBase,
        instantiate_device_type_tests,
    )
    from torch.testing._internal.common_utils import TestCase

    class TestAnyDevice(TestCase):
        def test_addition(self, device):
            x = torch.ones(2, device=device)
            print(x.device.type)
            self.assertEqual((x + 1).cpu(), torch.tensor([2.0, 2.0]))

    instantiate_device_type_tests(TestAnyDevice, globals(), except_for="cpu")
    print(issubclass(TestAnyDevicePRIVATEUSE1, PrivateUse1TestBase))
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(TestAnyDevicePRIVATEUSE1)
    result = unittest.TextTestRunner().run(suite)
    print(result.testsRun, result.wasSuccessful())
    """
    assert output(source).splitlines() == ["True", "openreg", "1 True"]


def test_encoder_takes_its_fast_path_on_the_device() -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = torch.randn(2, 3, 8)
    with torch.no_grad():
        expected = layer(x)
        layer.openreg()
        with torch.profiler.profile() as profiler:
            result = layer(x.openreg())
    torch.testing.assert_close(result.cpu(), expected)
    names = {average.key for average in profiler.key_averages()}
    assert "aten::_transformer_encoder_layer_fwd" in names


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is:FutureWarning")
def test_export_and_script_keep_the_device() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.sin() + 1

    x = torch.randn(3, device="openreg:1")
    exported = torch.export.export(Model(), (x,)).module()
    scripted = torch.jit.script(Model())
    for function in (exported, scripted, torch.vmap(Model())):
        assert torch.equal(function(x).cpu(), x.cpu().sin() + 1)
        assert function(x).device == x.device
