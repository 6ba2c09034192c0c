# SPDX-License-Identifier: BSD-3-Clause
"""Small wrong backends: openreg with one bug each, selected by ``PLANTED_BUG``.

The workers of openreg-conformance import this module after torch. Each bug replaces a
kernel, or a function of the device's module.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.library import Library, fallthrough_kernel, get_kernel

DEVICE = "openreg"
KEY = "PrivateUse1"
module: Any = torch.openreg


class Bug(NamedTuple):
    """A bug.

    Attributes:
        plant: Plants the bug.
        mechanism: Mechanism of the expected finding.
        subject: Words in the subject of the expected finding.
        cases: Patterns of cases of the level sample that find it, if cases of the level
            smoke do not.
    """

    plant: Callable[[], None]
    mechanism: str
    subject: str
    cases: tuple[str, ...] = ()


BUGS: dict[str, Bug] = {}
_library = Library("aten", "IMPL")
_kept: list[Any] = []


def bug(mechanism: str, subject: str = "", *cases: str) -> Any:
    def note(function: Callable[[], None]) -> Callable[[], None]:
        BUGS[function.__name__] = Bug(function, mechanism, subject, cases)
        return function

    return note


def replace(operator: str, wrong: Callable[..., Any], key: str = KEY) -> None:
    """Replaces a kernel by ``wrong``, whose first argument is the correct kernel."""
    real = get_kernel(f"aten::{operator}", key)
    schema = torch._C._get_schema(
        f"aten::{operator.partition('.')[0]}", operator.partition(".")[2]
    )
    tensors = [str(each.type) == "Tensor" for each in schema.arguments]

    def kernel(keys: Any, *args: Any, **kwargs: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            # Scalars in place of tensors are passed as numbers.
            made = [
                torch.tensor(each) if wanted and isinstance(each, int | float) else each
                for each, wanted in zip(args, tensors, strict=False)
            ]
            return real.call_boxed(keys, *made, **kwargs)

        return wrong(call, *args, **kwargs)

    _library.impl(operator, kernel, key, with_keyset=True)


# ---- operators ---------------------------------------------------------------


@bug("operators", "add")
def add_is_wrong_in_the_last_element():
    def wrong(call, x, y, **kwargs):
        result = call(x, y, **kwargs)
        if result.numel() > 3 and result.is_floating_point():
            result.view(-1)[-1:].mul_(1.01) if result.is_contiguous() else None
        return result

    replace("add.Tensor", wrong)


@bug("operators", "mul")
def mul_ignores_strides():
    def wrong(call, x, y):
        if x.dim() == 2 and not x.is_contiguous() and x.storage_offset() == 0:
            x = x.contiguous().view(-1).flip(0).view(x.shape)
        return call(x, y)

    replace("mul.Tensor", wrong)


@bug("operators", "sum")
def sum_leaves_an_element_out():
    replace("sum", lambda call, x, **kwargs: call(x.reshape(-1)[1:], **kwargs))


@bug("operators", "promotion")
def argmax_has_the_wrong_dtype():
    replace("argmax", lambda call, *args, **kwargs: call(*args, **kwargs).int())


@bug("operators", "promotion")
def sum_of_bools_has_the_wrong_dtype():
    def wrong(call, x, **kwargs):
        result = call(x, **kwargs)
        return result.int() if x.dtype == torch.bool else result

    replace("sum", wrong)


@bug("operators", "add")
def add_has_wrong_strides():
    def wrong(call, x, y, **kwargs):
        result = call(x, y, **kwargs)
        return result.t().contiguous().t() if result.dim() == 2 else result

    replace("add.Tensor", wrong)


@bug("operators", "addmm")
def addmm_ignores_beta():
    def wrong(call, bias, x, y, beta=1, alpha=1):
        return call(bias, x, y, beta=1, alpha=alpha)

    replace("addmm", wrong)


@bug("operators", "cat")
def cat_forgets_the_last():
    def wrong(call, parts, dim=0):
        if len(parts) > 1 and parts[-1].shape == parts[-2].shape:
            parts = [*parts[:-1], parts[-2]]
        return call(parts, dim)

    replace("cat", wrong)


@bug("operators", "aten::gelu has no kernel")
def gelu_is_missing():
    def wrong(call, x, **kwargs):
        raise NotImplementedError(
            "Could not run 'aten::gelu' with arguments from the 'openreg' backend."
        )

    replace("gelu", wrong)


@bug("operators", "sqrt")
def sqrt_ends_the_process():
    replace("sqrt", lambda call, x: os.abort())


@bug("operators", "mm")
def mm_reads_memory_that_is_not_there():
    replace("mm", lambda call, x, y: ctypes.string_at(0))


@bug("operators", "stack")
def stack_never_ends():
    def wrong(call, parts, dim=0):
        while True:
            time.sleep(1)

    replace("stack", wrong)


@bug("in_place", "mul")
def mul_in_place_writes_nothing():
    replace("mul_.Tensor", lambda call, x, y: x)


@bug("out", "add")
def add_out_writes_nothing():
    replace("add.out", lambda call, x, y, alpha=1, out=None: out)


@bug("out", "add")
def out_that_is_resized_has_default_strides():
    def wrong(call, x, y, alpha=1, out=None):
        if not out.numel():
            out.resize_(torch.broadcast_shapes(x.shape, y.shape))
        return call(x, y, alpha=alpha, out=out)

    replace("add.out", wrong)


@bug("gradients")
def gradient_of_tanh_is_wrong():
    replace("tanh_backward", lambda call, grad, y: call(grad, y) * 1.1)


@bug("operators", "mul")  # whose result does not require a gradient
def gradients_are_cut_off():
    def wrong(x, y):
        with torch.no_grad():
            return torch.ops.aten.mul(x, y)

    _library.impl("mul.Tensor", wrong, "AutogradPrivateUse1")


@bug("versions")
def add_in_place_raises_no_version():
    def wrong(x, y, *, alpha=1):
        with torch._C._AutoDispatchBelowADInplaceOrView():
            return torch.ops.aten.add_.Tensor(x, y, alpha=alpha)

    _library.impl("add_.Tensor", wrong, "AutogradPrivateUse1")


@bug("versions")
def fill_raises_the_version_twice():
    def wrong(call, x, value):
        torch.autograd.graph.increment_version(x)
        return call(x, value)

    replace("fill_.Scalar", wrong)


@bug("errors", "cat")
def cat_raises_another_exception():
    def wrong(call, parts, dim=0):
        try:
            return call(parts, dim)
        except RuntimeError:
            raise ValueError("shapes do not fit") from None

    replace("cat", wrong)


@bug("errors", "index")
def index_is_clamped():
    def wrong(call, x, indices):
        fit = [
            each
            if each is None or each.dtype == torch.bool
            else each.clamp(-size, size - 1)
            for each, size in zip(indices, x.shape, strict=False)
        ]
        return call(x, fit)

    replace("index.Tensor", wrong)


@bug("operators", "host")
def tensors_of_the_host_are_taken():
    def wrong(call, x, y, **kwargs):
        given = [each for each in (x, y) if isinstance(each, torch.Tensor)]
        there = next(each.device for each in given if each.device.type == DEVICE)
        on_host = [each for each in given if each.device.type == "cpu" and each.dim()]
        moved = [
            each.to(there) if any(each is other for other in on_host) else each
            for each in (x, y)
        ]
        return call(*moved, **kwargs)

    replace("add.Tensor", wrong)


# ---- copies and views --------------------------------------------------------


@bug("copy", "on the device")
def clone_is_an_alias():
    replace("clone", lambda call, x, **kwargs: torch.ops.aten.alias(x))


@bug("copy", "strides")
def copy_ignores_strides():
    def wrong(call, to, x, non_blocking=False):
        if x.device.type == "cpu" and x.dim() == 3 and not x.is_contiguous():
            x = x.as_strided(x.shape, torch.empty(x.shape).stride())
        return call(to, x, non_blocking)

    replace("copy_", wrong)


@bug("copy", "convert")
def copy_to_half_precision_truncates():
    def wrong(call, to, x, non_blocking=False):
        if to.dtype == torch.float16 and x.dtype == torch.float32:
            x = x.trunc()
        return call(to, x, non_blocking)

    replace("copy_", wrong)


@bug("copy", "between devices")
def copy_between_devices_does_nothing():
    def wrong(call, to, x, non_blocking=False):
        both = x.device.type == to.device.type
        return to if both and x.device != to.device else call(to, x, non_blocking)

    replace("copy_", wrong)


@bug("host_allocator", "do not wait")
def copy_that_does_not_wait_is_lost():
    def wrong(call, to, x, non_blocking=False):
        return to if non_blocking else call(to, x, non_blocking)

    replace("copy_", wrong)


@bug("copy", "numbers")
def item_is_the_next_number():
    def wrong(call, x):
        value = call(x)
        return value + 1 if x.dtype == torch.int64 and x.dim() == 0 else value

    replace("_local_scalar_dense", wrong)


@bug("factory", "empty_strided")
def empty_strided_ignores_strides():
    def wrong(call, size, stride, **kwargs):
        return call(size, torch.empty(size, device="meta").stride(), **kwargs)

    replace("empty_strided", wrong)


@bug("factory", "factory functions")
def memory_is_not_zeroed():
    replace("zero_", lambda call, x: x)


@bug("view")
def as_strided_ignores_the_offset():
    def wrong(call, x, size, stride, offset=None):
        return call(x, size, stride, 0 if offset == 1 else offset)

    replace("as_strided", wrong)


@bug("view")
def view_is_a_copy():
    replace("view", lambda call, x, size: call(x.clone(), size))


# ---- the device's module -----------------------------------------------------


@bug("device_module", "device_count")
def device_count_is_no_number():
    count = module.device_count
    module.device_count = lambda: str(count())


@bug("device_module", "set_device")
def set_device_does_nothing():
    module.set_device = lambda device: None


@bug("device_module", "not there")
def number_of_no_device_is_taken():
    real = module.set_device
    module.set_device = lambda i: real(i) if i in (0, 1) else None


@bug("device_module", "_is_in_bad_fork")
def bad_forks_are_unknown():
    del module._is_in_bad_fork


@bug("device_module", "random")
def states_of_generators_are_missing():
    del module.set_rng_state


@bug("device_module", "properties")
def device_has_no_name():
    def fail(device=None):
        raise NotImplementedError("get_device_name")

    module.get_device_name = fail


@bug("methods")
def methods_are_missing():
    del torch.Tensor.openreg


# ---- random numbers ----------------------------------------------------------


@bug("generator", "given")
def given_generator_is_ignored():
    def wrong(call, x, low=0, high=1, generator=None):
        return call(x, low, high, generator=None)

    replace("uniform_", wrong)


@bug("generator", "seeds")
def seed_is_ignored():
    module.manual_seed_all = lambda seed: None


@bug("generator", "sequences")
def numbers_repeat():
    def wrong(call, x, low=0, high=1, generator=None):
        return call(x, low, high, generator=torch.Generator(DEVICE).manual_seed(1))

    replace("uniform_", wrong)


@bug("generator", "states of the module")
def state_is_not_set():
    module.set_rng_state = lambda state, device=None: None


@bug("operators", "distributions")
def uniform_numbers_reach_1():
    def wrong(call, x, low=0, high=1, generator=None):
        return call(x, low, high, generator=generator).mul_(1.1)

    replace("uniform_", wrong)


@bug("generator", "host's generator")
def numbers_are_drawn_from_the_host():
    def wrong(call, x, mean=0, std=1, generator=None):
        torch.rand(1)
        return call(x, mean, std, generator=generator)

    replace("normal_", wrong)


@bug("operators", "distributions")
def normal_numbers_are_zeros():
    replace("normal_", lambda call, x, *args, **kwargs: x.zero_())


@bug("operators", "log_normal", "operators/log_normal/*/forward")
def log_normal_numbers_are_ones():
    replace("log_normal_", lambda call, x, *args, **kwargs: x.fill_(1))


@bug("operators", "geometric", "operators/geometric/*/forward")
def geometric_numbers_are_doubled():
    def wrong(call, x, p, generator=None):
        return call(x, p, generator=generator).mul_(2)

    replace("geometric_", wrong)


@bug("operators", "cauchy", "operators/cauchy/*/forward")
def cauchy_numbers_have_no_seed():
    def wrong(call, x, median=0, sigma=1, generator=None):
        fixed = torch.Generator(DEVICE).manual_seed(1)
        return call(x, median, sigma, generator=fixed)

    replace("cauchy_", wrong)


@bug("operators", "normal", "operators/normal/*/forward")
def normal_numbers_have_another_deviation():
    def wrong(call, mean, std, generator=None):
        return call(mean, std * 4, generator=generator)

    replace("normal.Tensor_Tensor", wrong)


@bug("gradients", "dropout", "operators/nn.functional.dropout/*/*ward")
def gradients_of_dropout_have_another_mask():
    def wrong(x, p, train):
        return Masked.apply(x, p) if train else x.clone()

    class Masked(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, p):
            ctx.p = p
            return torch.empty_like(x).bernoulli_(1 - p).div_(1 - p) * x

        @staticmethod
        def backward(ctx, grad):
            return torch.zeros_like(grad), None

    _library.impl("dropout", wrong, "AutogradPrivateUse1")


# ---- streams, events and memory ----------------------------------------------


@bug("events")
def event_never_completes():
    class Event(torch.Event):
        def query(self):
            return False

    torch.Event = Event


@bug("events", "wait_event")
def wait_event_does_nothing():
    class Stream(torch.Stream):
        def wait_event(self, event):
            return None

    torch.Stream = Stream


@bug("streams", "wait_stream")
def wait_stream_does_nothing():
    class Stream(torch.Stream):
        def wait_stream(self, stream):
            return None

    torch.Stream = Stream


@bug("streams", "synchronize")
def synchronize_returns_at_once():
    class Stream(torch.Stream):
        def synchronize(self):
            return None

    torch.Stream = Stream


@bug("events", "too early")
def event_is_complete_at_once():
    class Event(torch.Event):
        def synchronize(self):
            return None

        def query(self):
            return True

    torch.Event = Event


@bug("events", "times")
def times_are_in_seconds():
    class Event(torch.Event):
        def elapsed_time(self, end):
            return -super().elapsed_time(end)

    torch.Event = Event


@bug("record_stream")
def record_stream_does_nothing():
    replace("record_stream", lambda call, x, stream: None)


@bug("statistics", "leak")
def mm_leaks():
    def wrong(call, x, y):
        _kept.append(call(x, y))
        return _kept[-1].clone()

    replace("mm", wrong)


@bug("statistics")
def statistics_are_zero():
    def zeros(device):
        return {}

    torch.accelerator.memory.memory_stats = zeros
    torch.accelerator.memory_stats = zeros


@bug("host_allocator")
def all_memory_is_called_pinned():
    torch.Tensor.is_pinned = lambda self, device=None: True


@bug("allocator", "out of memory")
def out_of_memory_is_another_exception():
    def wrong(call, *args, **kwargs):
        try:
            return call(*args, **kwargs)
        except torch.OutOfMemoryError:
            raise ValueError("no memory") from None

    replace("empty.memory_format", wrong)


@bug("storage")
def resize_loses_values():
    def wrong(call, x, size, **kwargs):
        return call(x, size, **kwargs).zero_()

    replace("resize_", wrong)


# ---- programs ----------------------------------------------------------------


@bug("autocast")
def autocast_leaves_products_alone():
    for each in ("mm", "linear", "matmul"):
        _library.impl(each, fallthrough_kernel, "AutocastPrivateUse1")


@bug("autocast", "float32")
def autocast_leaves_softmax_in_half_precision():
    _library.impl("softmax.int", fallthrough_kernel, "AutocastPrivateUse1")


@bug("autocast", "GradScaler")
def infinite_gradients_are_not_found():
    def wrong(call, grads, found, scale):
        call(grads, torch.zeros_like(found), scale)

    replace("_amp_foreach_non_finite_check_and_unscale_", wrong)


@bug("autocast")
def dtypes_of_autocast_are_missing():
    del module.get_amp_supported_dtype


@bug("serialization")
def files_are_loaded_on_the_host():
    def restore(storage, location):
        return storage if location.startswith(DEVICE) else None

    torch.serialization.register_package(0, lambda storage: None, restore)


@bug("optimizers", "Adam")
def foreach_step_is_wrong():
    def wrong(call, params, one, two, scalars):
        return call(params, one, two, [each * 1.5 for each in scalars])

    replace("_foreach_addcdiv_.ScalarList", wrong)


@bug("exit")
def process_ends_with_another_status():
    atexit.register(os._exit, 3)


@bug("process_group")
def process_group_is_missing():
    torch.distributed.Backend.default_device_backend_map.pop(DEVICE)


def plant(name: str) -> None:
    """Makes the device wrong.

    Raises:
        KeyError: If the bug does not exist.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        BUGS[name].plant()


if os.environ.get("PLANTED_BUG"):
    plant(os.environ["PLANTED_BUG"])
