# SPDX-License-Identifier: BSD-3-Clause
"""Saving, loading, pickling and copying: aliases, devices, and what is refused."""

import copy
import io
import pickle
import tempfile
import warnings
from collections import OrderedDict

import torch
from torch import nn

from openreg_conformance.checks.observing import Host, Programs, refusal

_programs = Programs(__name__)
program, each, cases = _programs.program, _programs.each, _programs.cases


def saved(value: object, **options: object) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file, **options)
    file.seek(0)
    return file


def family(device: str) -> dict[str, torch.Tensor]:
    """Tensors that share one storage."""
    x = torch.arange(12.0, device=device)
    return {
        "whole": x,
        "part": x[3:9].view(2, 3),
        "again": x,
        "turned": x.view(3, 4).mT,
    }


@program
@each("zipped", [True, False])
def loaded_views_share_their_storage(device, zipped):
    loaded = torch.load(saved(family(device), _use_new_zipfile_serialization=zipped))
    loaded["whole"].add_(1)
    return loaded


@program
def loaded_to_the_host_views_share_their_storage(device):
    loaded = torch.load(saved(family(device)), map_location="cpu")
    loaded["whole"].add_(1)
    return {name: Host(each) for name, each in loaded.items()}


LOCATIONS = {
    "string": lambda device: device,
    "device": torch.device,
    "with index": lambda device: device if device == "cpu" else f"{device}:0",
    "dict": lambda device: {"cpu": device},
    "function": lambda device: (
        lambda storage, _: storage if device == "cpu" else getattr(storage, device)()
    ),
    "function of nothing": lambda device: lambda storage, location: None,
}


@program
@each("location", LOCATIONS)
def location_moves_what_is_loaded(device, location):
    nothing = location == "function of nothing"
    loaded = torch.load(
        saved(family(device if nothing else "cpu")),
        map_location=LOCATIONS[location](device),
    )
    loaded["whole"].add_(1)
    return loaded


@program
def location_function_sees_each_storage_once(device):
    seen = []

    def locate(storage, location):
        seen.append((location, storage.nbytes()))

    torch.load(
        saved([family(device), torch.ones(2, device=device)]), map_location=locate
    )
    return seen


@program
def memory_mapped_file_is_loaded_to_the_device(device):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/saved.pt"
        torch.save(family("cpu"), path)
        loaded = torch.load(path, mmap=True, map_location=device)
        loaded["whole"].add_(1)
        return loaded, torch.load(path, map_location=device)


@program
def file_of_the_device_is_loaded_by_its_tag(device):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/saved.pt"
        torch.save(family(device), path)
        with torch.serialization.safe_globals([]):
            return torch.load(path, weights_only=True)


@program
def parameters_keep_what_they_are(device):
    p = nn.Parameter(torch.ones(2, device=device))
    frozen = nn.Parameter(torch.ones(2, device=device), requires_grad=False)
    p.grad = torch.ones(2, device=device)
    loaded = torch.load(saved([p, frozen, p, p.detach()]))
    return loaded, [each.grad for each in loaded]


@program
def module_is_saved_whole_with_its_ties(device):
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).to(device)
    module[1].weight = module[0].weight
    loaded = torch.load(saved(module), weights_only=False)
    return dict(loaded.named_parameters()), loaded[0].weight is loaded[1].weight


@program
def module_is_refused_when_only_weights_may_be_loaded(device):
    file = saved(nn.Linear(2, 2).to(device))
    return refusal(lambda: torch.load(file), "Weights only load failed")[:80]


@program
def state_of_module_and_optimizer_is_loaded(device):
    module = nn.Linear(2, 2).to(device)
    optimizer = torch.optim.Adam(module.parameters(), foreach=False)
    module(torch.ones(1, 2, device=device)).sum().backward()
    optimizer.step()
    state = {"module": module.state_dict(), "optimizer": optimizer.state_dict()}
    loaded = torch.load(saved(state))
    for each in loaded["optimizer"]["state"].values():
        each["step"] = Host(each["step"])
    return loaded["module"], loaded["optimizer"]["state"]


@program
def pickled_tensors_share_their_storage(device):
    x = torch.arange(4.0, device=device)
    loaded = pickle.loads(pickle.dumps({"x": x, "view": x[1:], "same": x}))
    loaded["x"].add_(1)
    return loaded


@program
def deepcopied_views_share_their_storage(device):
    original = family(device)
    copied = copy.deepcopy(original)
    copied["whole"].add_(1)
    return copied, original


@program
def deepcopy_of_a_parameter_keeps_its_gradient(device):
    p = nn.Parameter(torch.ones(2, device=device))
    p.grad = torch.arange(2.0, device=device)
    copied = copy.deepcopy(p)
    return copied, copied.grad, copied.grad is p.grad


@program
def deepcopy_of_what_is_no_leaf_is_refused(device):
    x = torch.ones(2, device=device, requires_grad=True)
    return refusal(lambda: copy.deepcopy(x * 2), "Only Tensors created explicitly")


@program
def shallow_copy_is_a_new_object_over_the_same_storage(device):
    x = torch.arange(3.0, device=device)
    copied = copy.copy(x)
    copied.add_(1)
    return x, copied


KINDS = {
    "bool": lambda d: torch.tensor([True, False], device=d),
    "bfloat16": lambda d: torch.arange(3, dtype=torch.bfloat16, device=d),
    "float8": lambda d: (
        torch.ones(3, device=d).to(torch.float8_e4m3fn).view(torch.int8)
    ),
    "complex": lambda d: torch.full((2,), 1 + 2j, device=d),
    "conj": lambda d: torch.full((2,), 1 + 2j, device=d).conj(),
    "neg": lambda d: torch.full((2,), 1 + 2j, device=d).conj().imag,
    "empty": lambda d: torch.empty(0, 3, device=d),
    "scalar": lambda d: torch.tensor(3.0, device=d),
    "sparse": lambda d: torch.eye(3, device=d).to_sparse(),
    "csr": lambda d: torch.eye(3, device=d).to_sparse_csr(),
    "strided": lambda d: torch.arange(6.0, device=d).as_strided((2, 2), (2, 1), 1),
    "channels_last": lambda d: torch.ones(1, 2, 2, 2, device=d).to(
        memory_format=torch.channels_last
    ),
    "requires_grad": lambda d: torch.ones(2, device=d, requires_grad=True),
}


WAYS = ["save", "pickle", "deepcopy", "cpu and back"]


@program
@each(
    ("kind", "way"),
    # PyTorch has no deepcopy of CSR tensors.
    [(k, w) for k in KINDS for w in WAYS if (k, w) != ("csr", "deepcopy")],
)
def kind_of_tensor_survives(device, kind, way):
    # Since torch 2.14, a load warns of sparse tensors that were unpickled before it.
    warnings.filterwarnings("ignore", "Validating sparse tensor invariants")
    x = KINDS[kind](device)
    return {
        "save": lambda: torch.load(saved(x)),
        "pickle": lambda: pickle.loads(pickle.dumps(x)),
        "deepcopy": lambda: copy.deepcopy(x),
        "cpu and back": lambda: x.detach().cpu().to(device, copy=True),
    }[way]()


@program
def storage_is_saved_and_copied(device):
    storage = torch.arange(3, dtype=torch.uint8, device=device).untyped_storage()
    loaded = torch.load(saved(storage), weights_only=False)
    copied = copy.deepcopy(storage)
    copied.fill_(9)
    return [each.tolist() for each in (storage, loaded, copied, storage.clone())], [
        str(each.device) for each in (storage, loaded, copied)
    ]


@program
def typed_storage_warns_and_is_saved(device):
    storage = torch.arange(3.0, device=device).storage()
    loaded = torch.load(saved(storage), weights_only=False)
    return loaded.tolist(), str(loaded.device), type(loaded).__name__


@program
def attributes_and_order_survive(device):
    state = OrderedDict(b=torch.ones(1, device=device), a=(torch.Size([2]), 1.5, "x"))
    loaded = torch.load(saved(state))
    return list(loaded), loaded["b"], str(loaded["a"])


@program
def hooks_of_tensors_are_saved_with_a_warning(device):
    x = torch.ones(2, device=device, requires_grad=True)
    x.register_hook(print)
    return torch.load(saved(x), weights_only=False)


class Named(torch.Tensor):
    """A subclass of Tensor with an attribute."""


torch.serialization.add_safe_globals([Named])


@program
def subclass_and_its_attributes_survive(device):
    x = torch.ones(2, device=device).as_subclass(Named)
    x.name_of_mine = "x"
    loaded = torch.load(saved(x), weights_only=False)
    return loaded, loaded.name_of_mine, pickle.loads(pickle.dumps(x)).name_of_mine


@program
def deepcopy_of_a_subclass_without_new_empty_is_refused(device):
    x = torch.ones(2, device=device).as_subclass(Named)
    return refusal(lambda: copy.deepcopy(x), "The default implementation of __deepcopy")


@program
def data_may_be_left_out(device):
    with torch.serialization.skip_data():
        file = saved(torch.ones(3, device=device))
    loaded = torch.load(file)
    return loaded, len(file.getvalue()) > 0
