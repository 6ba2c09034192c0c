# SPDX-License-Identifier: BSD-3-Clause
"""Files and copies of tensors: torch.save and torch.load, pickle, deepcopy, dlpack."""

import copy
import io
import pickle

import torch

from openreg_conformance.case import Suite

_suite = Suite(__name__)
case, cases = _suite.case, _suite.cases


def saved(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


@case("serialization")
def tensors_are_saved_and_loaded(device):
    """torch.load restores values, dtypes, strides and the device."""
    for dtype in (torch.float32, torch.int64, torch.bool, torch.bfloat16):
        x = torch.arange(6).to(dtype).view(2, 3).to(device)
        for each in (x, x.t(), x[:, 1:]):
            y = torch.load(saved(each))
            assert y.device.type == device, f"it is on {y.device}"
            assert y.dtype == dtype and y.stride() == each.stride()
            assert y.cpu().equal(each.cpu())


@case("serialization", subject="map_location")
def files_are_loaded_on_another_device(device):
    """map_location moves tensors of a file between the device and the host."""
    x = torch.arange(6.0, device=device)
    y = torch.load(saved(x), map_location="cpu")
    assert y.device.type == "cpu" and y.equal(torch.arange(6.0))
    z = torch.load(saved(torch.arange(6.0)), map_location=device)
    assert z.device.type == device and z.cpu().equal(torch.arange(6.0))


@case("serialization", subject="shared storages", users=0.4)
def shared_storages_stay_shared(device):
    """Tensors that share a storage still share one after torch.load."""
    x = torch.arange(6.0, device=device)
    y, z = torch.load(saved([x, x[2:]]))
    y[2] = 100
    assert z[0].item() == 100


@case("serialization", subject="state_dict")
def state_dicts_are_loaded(device):
    """A module's and an optimizer's state can be saved and loaded."""
    model = torch.nn.Linear(3, 2).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 3, device=device)).sum().backward()
    optimizer.step()
    file = saved({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    state = torch.load(file)
    other = torch.nn.Linear(3, 2).to(device)
    other.load_state_dict(state["model"])
    assert other.weight.cpu().equal(model.weight.cpu())
    torch.optim.AdamW(other.parameters()).load_state_dict(state["optimizer"])


@case("serialization", subject="copy and pickle")
def tensors_are_copied_and_pickled(device):
    """Deepcopy and pickle keep values, device and requires_grad."""
    x = torch.arange(4.0, device=device).requires_grad_()
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.device.type == device and y.requires_grad
        assert y.detach().cpu().equal(torch.arange(4.0))
    module = copy.deepcopy(torch.nn.Linear(2, 2).to(device))
    assert module.weight.device.type == device


@case("serialization", "accelerator", subject="numpy", users=0.4)
def numpy_is_refused(device):
    """numpy() of a device tensor raises a TypeError that names the solution."""
    try:
        torch.ones(1, device=device).numpy()
    except TypeError as error:
        assert "cpu()" in str(error), str(error)
        return
    raise AssertionError("numpy() accepted device memory")


@case("serialization", subject="DLPack", users=0.1)
def tensors_go_through_dlpack(device):
    """A DLPack capsule shares the tensor's memory."""
    from torch.utils.dlpack import from_dlpack, to_dlpack

    x = torch.arange(4.0, device=device)
    y = from_dlpack(to_dlpack(x))
    assert y.device == x.device and y.data_ptr() == x.data_ptr()
    y[0] = 9
    assert x[0].item() == 9
