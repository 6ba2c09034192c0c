# SPDX-License-Identifier: BSD-3-Clause
"""Patches of Inductor for the device, and the functions that the package relies on.

Inductor compares device types with "cpu" in many places, for one of two reasons: memory
is host memory, or kernels are written in C++ and compute the CPU's results. The
functions listed here check for the second reason. Their constant "cpu" is replaced by a
string that also equals the device's name. The code of a function is changed in place,
which also affects modules that have imported it by name.

``_sources.json`` holds the hash of the source of each function that the package
changes, overrides or reads, for each supported version of torch. If a function of the
installed torch differs from all of them, nothing is changed. ``tools/upgrade.py``
writes the file.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import json
import textwrap
from collections.abc import Callable, Sequence
from importlib import metadata, resources
from types import CodeType, FunctionType
from typing import Any

import torch

from openreg_inductor._torch_version import before, since


class UpstreamChangedError(RuntimeError):
    """A function of torch differs from the version that the package supports."""


# Functions whose "cpu" means C++ kernels with the CPU's results. In torch._inductor,
# unless another module is named.
# [docs: patches]
_ASK_FOR_CPP = (
    "choices:InductorChoices.get_config_heuristics",
    "codecache:FxGraphHashDetails._contains_cpu_tensor",
    "codecache:FxGraphHashDetails._may_generate_cpu_cpp_code",
    *since((2, 15), "codegen.subgraph:SubgraphChoiceCaller.benchmark"),
    "decomposition:addmm",
    "decomposition:bmm",
    "decomposition:mm",
    *since((2, 14), "fx_passes.reduced_atomic_contention:_evaluate_candidate"),
    "ir:is_cpu",
    "kernel.bmm:tuned_bmm",
    "kernel.conv:convolution",
    "kernel.flex.flex_attention:flex_attention",
    *since((2, 14), "kernel.mm_common:_use_small_mm_pointwise"),
    "lowering:_make_reduction_inner",
    "lowering:_pad_as_cat",
    *since((2, 15), "lowering:_pool_argmax_inner_fn"),
    "lowering:cat",
    "lowering:div_prim",
    *since((2, 14), "lowering:promote_constants"),
    "lowering:use_two_step_variance",
    "scheduler:BaseSchedulerNode.is_cpu",
    *before(
        (2, 15),
        "scheduler:ForeachKernelSchedulerNode._default_group_nodes_for_combo_kernels",
    ),
    *since(
        (2, 15),
        "scheduler:ForeachKernelSchedulerNode._filter_nodes_for_combo_kernel_grouping",
    ),
    "scheduler:Scheduler.speedup_by_fusion",
    "select_algorithm:AlgorithmSelectorCache.__call__",
    "select_algorithm:ExternKernelCaller.__init__",
    *since((2, 14), "torch._decomp.decompositions:_max_unpoolnd"),
    "torch._decomp.decompositions:native_batch_norm_helper",
    "torch._refs:native_group_norm",
    "torch._refs:native_layer_norm",
    "utils:_use_template_for_cpu",
    "utils:get_current_backend",
    "utils:use_scatter_fallback",
)
# [docs: end]
# Functions whose "cuda" means a device that supports graphs or has generators.
_ASK_FOR_CUDA = (
    *before((2, 15), "cudagraph_utils:check_multiple_devices_or_any_cpu_nodes"),
    *since((2, 14), "ir:ExternKernel.process_kernel"),
    "torch._dynamo.backends.cudagraphs:get_device_index",
)
# Device types with layouts for convolutions, and device types with graphs.
_DEVICES = (
    "graph:SUPPORTED_MKLDNN_DEVICES",
    *since((2, 15), "cudagraph_utils:_CUDAGRAPH_SUPPORTED_DEVICE_TYPES"),
)
# Functions that call is_gpu(), and the function that they call instead. Only two
# functions of torch._inductor.lowering call it; make_pointwise() needs another result.
_ASK_FOR_GPU = {
    "scheduler:Scheduler.should_partition": "openreg_has_graphs",
    **dict.fromkeys(since((2, 14), "lowering:index_put_impl_"), "openreg_is_gpu"),
}
# Functions whose "cuda" means kernels in Triton or CUDA's libraries, or tensors that
# these have made. They matter with OPENREG_DEVICE=cuda only.
# [docs: triton]
_ASK_FOR_TRITON = (
    "compile_fx:is_tf32_warning_applicable",
    "cpp_builder:CppBuilder.save_compile_cmd_to_cmake",
    "fx_passes.fuse_attention:_get_sfdp_patterns",
    "fx_passes.fuse_attention:_sfdp_extra_check",
    "fx_passes.fuse_attention:_sfdp_params_check",
    "fx_passes.fuse_attention:_sfdp_replacement_16",
    "fx_passes.misc_patterns:_misc_patterns_init",
    "fx_passes.pad_mm:_pad_mm_init",
    "fx_passes.post_grad:check_shape_cuda_and_fused_int_mm_mul_enabled",
    "fx_passes.post_grad:prepare_softmax_extra_check",
    "fx_passes.quantization:_is_valid_concat_linear_int8_woq_optimization_pattern",
    "fx_passes.quantization:_is_valid_woq_optimization_pattern",
    *before((2, 14), "fx_passes.reduced_atomic_contention:_fit_to_memory_budget"),
    "fx_passes.replace_random:replace_random",
    "graph:GraphLowering.codegen_with_cpp_wrapper",
    "ir:is_triton",
    "jagged_lowerings:register_jagged_ops",
    "kernel.bmm:tuned_bmm",
    "lowering:addcdiv",
    "lowering:addcmul",
    "lowering:inductor_random",
    "lowering:make_pointwise",
    "lowering:sdpa_constraint",
    "torch._decomp.decompositions:_addmm_activation",
    "torch._decomp.decompositions:_grid_sampler_2d",
    "torch._decomp.decompositions:_reflection_or_replication_pad",
    "torch._decomp.decompositions:_upsample_linear",
    "torch._decomp.decompositions:_upsample_nearest",
    "torch._decomp.decompositions:log_sigmoid_forward",
    "torch._decomp.decompositions_for_jvp:log_sigmoid_forward",
    "torch._meta_registrations:_linalg_svd_meta",
    "torch._meta_registrations:_pad2d_common",
    "torch._meta_registrations:meta_fft_c2c",
    "torch._meta_registrations:meta_fft_c2r",
    "torch._meta_registrations:meta_fft_r2c",
    "torch._meta_registrations:meta_linalg_eig",
    "torch._meta_registrations:upsample_nearest2d",
    "torch._prims:_svd_meta",
    "torch._refs.nn.functional:channel_shuffle",
    "utils:needs_fallback_due_to_atomic_add_limitations",
)
# [docs: end]
# The versions of torch in which this list was compared with all uses of "cuda".
_TRITON_REVIEWED = ("2.13",)
# Functions of CUDA's graphs that are replaced when they are imported.
_GRAPHS = (
    "cudagraph_trees:cudagraphify_impl",
    "cudagraph_trees:get_manager",
)
# The function of FlexAttention that is replaced on import, and its callers.
_ATTENTION = (
    "torch._higher_order_ops.flex_attention:_flex_attention_autocast_impl",
    "torch.amp.autocast_mode:_cast",
    "torch.nn.attention.flex_attention:_apply_kernel_options",
    "torch.nn.attention.flex_attention:_validate_device",
)
# The function that passes CUDA's generator to random operators, up to torch 2.13.
_TAKES_GENERATORS = before((2, 14), "ir:ExternKernel.process_kernel")
# Functions and classes that the package derives from, reads or replaces.
_RELIED_ON = (
    "torch._functorch._aot_autograd.utils:get_default_generator",
    "torch._higher_order_ops.flex_attention:_math_attention_inner",
    "torch._higher_order_ops.flex_attention:_permute_strides",
    "torch._higher_order_ops.flex_attention:create_fw_bw_graph",
    "torch._higher_order_ops.flex_attention:flex_attention_backward_fake_tensor_mode",
    "torch._higher_order_ops.flex_attention:flex_attention_fake_impl",
    "torch._higher_order_ops.flex_attention:math_attention",
    "torch._higher_order_ops.flex_attention:sdpa_dense",
    "torch._higher_order_ops.flex_attention:sdpa_dense_backward",
    "torch._higher_order_ops.flex_attention:trace_flex_attention",
    "torch._higher_order_ops.flex_attention:trace_flex_attention_backward",
    "async_compile:AsyncCompile.cpp_pybinding",
    "codecache:CppCodeCache.load_async",
    "codecache:CppPythonBindingsCodeCache",
    "codegen.common:DeviceOpOverrides",
    "codegen.common:KernelArgs.cpp_argdefs",
    "codegen.common:register_backend_for_device",
    "codegen.cpp:CppKernel.codegen_conditions",
    "codegen.cpp:CppKernelProxy",
    "codegen.cpp:CppOverrides.floordiv",
    "codegen.cpp:CppScheduling.codegen_template",
    "codegen.cpp:CppScheduling.can_fuse_vertical",
    "codegen.cpp:CppScheduling.codegen_node",
    "codegen.cpp:CppScheduling.define_kernel",
    "codegen.cpp:CppScheduling.flush",
    "codegen.cpp:CppVecKernel._get_mask_cast",
    "codegen.cpp:CppVecKernel._get_mask_type",
    "codegen.cpp:CppVecKernel._get_num_vectors",
    "codegen.cpp:CppVecKernel.load",
    "codegen.cpp:CppVecKernel._get_vec_load_line",
    "codegen.cpp:CppVecOverrides.__new__",
    "codegen.cpp:CppVecOverrides.floordiv",
    "codegen.cpp:KernelGroup",
    "codegen.cpp:LoopLevel.lines",
    "codegen.cpp:WorkSharing",
    "codecache:_get_cpp_wrapper_header",
    "codegen.cpp_flex_attention_template:CppFlexAttentionTemplate.modification",
    "codegen.cpp_template_kernel:CppTemplateKernel.define_buffer",
    "codegen.cpp_template_kernel:CppTemplateKernel.store_output",
    "codegen.cpp_template_kernel:CppTemplateKernel.store_pointwise_nodes",
    "codegen.cpp_template_kernel:CppTemplateKernel.store_grouped_gemm_pointwise_nodes",
    "codegen.cpp_wrapper_cpu:CppWrapperCpu._define_kernel_helper",
    "codegen.cpp_wrapper_cpu:CppWrapperCpu._generate_end_jit",
    "codegen.cpp_wrapper_cpu:CppWrapperCpu._generate_kernel_call_helper",
    "codegen.cpp_wrapper_cpu:CppWrapperCpu.add_device_include",
    "codegen.cpp_wrapper_cpu:CppWrapperCpu.codegen_device",
    "codegen.cpp_wrapper_cpu:CppWrapperCpu.codegen_device_idx",
    "codegen.cpp_wrapper_cpu:CppWrapperCpu.create",
    "codegen.cpp_wrapper_cpu:CppWrapperCpu.get_c_shim_func_name",
    "codegen.wrapper:EnterDeviceContextManagerLine.codegen",
    "cpp_builder:get_cpp_torch_device_options",
    "codegen.wrapper:PythonWrapperCodegen._generate_kernel_call_helper",
    "codegen.wrapper:PythonWrapperCodegen.create",
    "codegen.wrapper:PythonWrapperCodegen.make_allocation",
    "codegen.wrapper:PythonWrapperCodegen.write_header",
    "codegen.wrapper:SubgraphPythonWrapperCodegen",
    "fx_passes.post_grad:post_grad_passes",
    *_TAKES_GENERATORS,
    *since((2, 15), "cudagraph_utils:check_multiple_devices_or_any_cpu_nodes"),
    "graph:GraphLowering.decide_layout_opt",
    "kernel.flex.flex_cpu:check_cpu_supported",
    "kernel.flex.flex_cpu:lower_cpu",
    "lowering:addcdiv",
    "lowering:addcmul",
    "lowering:register_foreach_pointwise",
    "lowering:make_pointwise",
    "scheduler:Scheduler._codegen",
    "scheduler:BaseSchedulerNode.is_gpu",
    "scheduler:Scheduler._has_multi_stream_nodes",
    "select_algorithm:AlgorithmSelectorCache.generate_example_value",
    "template_heuristics.registry:register_template_heuristic",
    "utils:device_need_guard",
)

_NEEDED = (*_ASK_FOR_CPP, *_ASK_FOR_CUDA, *_ASK_FOR_GPU, *_RELIED_ON)
# All of them: the keys of _sources.json.
SOURCES = (*_NEEDED, *_ASK_FOR_TRITON, *_GRAPHS, *_ATTENTION)


def apply(device: str) -> None:
    """Makes Inductor generate C++ kernels for the device; once per process.

    Args:
        device: The device name.

    Raises:
        UpstreamChangedError: If a function differs from all supported versions of
            torch; nothing is changed then.
    """
    _check(_NEEDED)
    _take_from_triton(device)
    for name, paths in (("cpu", _ASK_FOR_CPP), ("cuda", _ASK_FOR_CUDA)):
        for path in paths:
            function = _find(path)
            function.__code__ = _with_constant(
                function.__code__, _EqualTo(name, device)
            )
    for path in _DEVICES:
        module, _, collection = path.partition(":")
        place: Any = importlib.import_module(f"torch._inductor.{module}")
        known = getattr(place, collection)
        setattr(place, collection, type(known)((*known, device)))
    for path, asked in _ASK_FOR_GPU.items():
        code = _find(path).__code__
        names = (asked if each == "is_gpu" else each for each in code.co_names)
        _find(path).__code__ = code.replace(co_names=tuple(names))
    _allow_graph_partitions(device)
    _register_autotuning(device)
    _accept_generators_of_any_device()

    scheduler: Any = importlib.import_module("torch._inductor.scheduler")
    _keep_result_on_device(device)
    _store_template_buffers_on_device(device)
    needs_guard = scheduler.device_need_guard
    scheduler.device_need_guard = lambda name: name == device or needs_guard(name)


def _take_from_triton(device: str) -> None:
    """Makes Inductor treat the device as one without Triton, if it is called "cuda".

    The functions that mean Triton compare with the name of another GPU instead, which
    a CPU build of PyTorch never has.
    """
    utils: Any = importlib.import_module("torch._inductor.utils")
    if device not in utils.GPU_TYPES:
        return
    _check(_ASK_FOR_TRITON, _TRITON_REVIEWED)
    utils.GPU_TYPES.remove(device)
    config: Any = importlib.import_module("torch._inductor.config")
    config.triton_disable_device_detection = True  # of has_triton()
    importlib.import_module("torch.utils._triton").has_triton.cache_clear()
    for path in _ASK_FOR_TRITON:
        function = _find(path)
        function.__code__ = _renamed(function.__code__, device, "xpu")


def _renamed(code: CodeType, name: str, other: str) -> CodeType:
    """Replaces a device type in constants, ``torch.NAME`` and ``tensor.is_NAME``."""

    def changed(value: Any) -> Any:
        if isinstance(value, tuple | frozenset):
            return type(value)(map(changed, value))
        if isinstance(value, CodeType):
            return _renamed(value, name, other)
        return other if value == name and isinstance(value, str) else value

    names = {name: other, f"is_{name}": f"is_{other}"}
    return code.replace(
        co_consts=tuple(map(changed, code.co_consts)),
        co_names=tuple(names.get(each, each) for each in code.co_names),
    )


def _keep_result_on_device(device: str) -> None:
    """Places the result of an operator with CPU scalars on the device.

    Inductor uses the device of a GPU argument, else the device of the first argument.
    addcmul and addcdiv, and their foreach variants, always use the first argument.
    """
    lowering: Any = importlib.import_module("torch._inductor.lowering")
    is_gpu = lowering.openreg_is_gpu = lowering.is_gpu
    lowering.is_gpu = lambda name: name == device or is_gpu(name)

    def placed(first: Any, *others: Any) -> Any:
        if isinstance(first, list | tuple):
            return [placed(*each) for each in zip(first, *others, strict=True)]
        places = (other.get_device() for other in others)
        own = next((at for at in places if at and at.type == device), None)
        return first if own is None else lowering.to_device(first, own)

    def keeping_device(lower: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(lower)
        def lowered(first: Any, one: Any, other: Any, *args: Any, **rest: Any) -> Any:
            return lower(placed(first, one, other), one, other, *args, **rest)

        return lowered

    aten = torch.ops.aten
    for operator in (
        aten.addcmul.default,
        aten.addcdiv.default,
        aten._foreach_addcmul.Scalar,
        aten._foreach_addcdiv.Scalar,
    ):
        lowering.lowerings[operator] = keeping_device(lowering.lowerings[operator])


def _store_template_buffers_on_device(device: str) -> None:
    """Makes template kernels store local buffers directly in device memory.

    The template marks them as CPU buffers, which another kernel would copy to the
    device.
    """
    templates: Any = importlib.import_module(
        "torch._inductor.codegen.cpp_template_kernel"
    )
    store = templates.CppTemplateKernel.store_output

    @functools.wraps(store)
    def store_output(self: Any, dst: Any, src: Any, *args: Any, **rest: Any) -> Any:
        own = dst.get_device()
        if own.type == device:
            src.get_layout().device = own
        return store(self, dst, src, *args, **rest)

    templates.CppTemplateKernel.store_output = store_output


def _accept_generators_of_any_device() -> None:
    """Makes random operators accept generators of any device.

    With activation checkpointing, AOTAutograd passes a generator of each registered
    device to operators that may draw random numbers, such as attention. Inductor then
    asserts that the generator is CUDA's and takes it from ``torch.cuda``.
    """
    ir: Any = importlib.import_module("torch._inductor.ir")
    for path in _TAKES_GENERATORS:
        function = _find(path)
        source = textwrap.dedent(inspect.getsource(function))
        for name in ("arg", "x"):
            source = source.replace(
                f'assert {name}.device.type == "cuda" and ', "assert "
            )
            source = source.replace(
                "torch.cuda.default_generators[device_index]",
                "torch._functorch._aot_autograd.utils.get_default_generator"
                f"({name}.device)",
                1,
            )
        source = "\n" * (function.__code__.co_firstlineno - 1) + source  # tracebacks
        scope: dict[str, Any] = {}
        exec(compile(source, ir.__file__, "exec"), vars(ir), scope)
        function.__code__ = scope[function.__name__].__func__.__code__


def _allow_graph_partitions(device: str) -> None:
    """Enables graph partitions at functions that cannot be captured, as on a GPU."""
    scheduler: Any = importlib.import_module("torch._inductor.scheduler")
    is_gpu = scheduler.BaseSchedulerNode.is_gpu

    def has_graphs(node: Any) -> bool:
        """Returns whether the work of a node can be captured."""
        own = node.get_device()
        return is_gpu(node) or (own is not None and own.type == device)

    scheduler.BaseSchedulerNode.openreg_has_graphs = has_graphs


def check_graphs() -> None:
    """Checks that ``cudagraph_trees`` is the supported version.

    Raises:
        UpstreamChangedError: If it differs.
    """
    _check(_GRAPHS)


def knows_attention() -> bool:
    """Returns whether FlexAttention is the supported version."""
    return all(map(_is_known, _ATTENTION))


class _EqualTo(str):
    """A string that also equals another string."""

    __slots__ = ("other",)
    other: str

    def __new__(cls, name: str, other: str) -> _EqualTo:
        self = super().__new__(cls, name)
        self.other = other
        return self

    def __eq__(self, value: object) -> bool:
        return str.__eq__(self, value) is True or value == self.other

    def __ne__(self, value: object) -> bool:
        return not self == value

    __hash__ = str.__hash__


def _with_constant(code: CodeType, name: _EqualTo) -> CodeType:
    """Replaces the constants that equal a name."""

    def changed(value: Any) -> Any:
        if type(value) is str and str.__eq__(name, value):
            return name
        if type(value) is tuple:
            return tuple(changed(each) for each in value)
        if type(value) is frozenset and str(name) in value:
            return value | {name.other}
        if isinstance(value, CodeType):
            return _with_constant(value, name)
        return value

    return code.replace(co_consts=tuple(changed(each) for each in code.co_consts))


def _register_autotuning(device: str) -> None:
    """Registers the CPU's template choices, which are autotuned on the CPU."""
    from torch._inductor.template_heuristics import registry

    algorithms: Any = importlib.import_module("torch._inductor.select_algorithm")
    selector = algorithms.AlgorithmSelectorCache
    generate = selector.generate_example_value

    @functools.wraps(generate)
    def on_host(size: Any, stride: Any, place: Any, *rest: Any) -> Any:
        is_own = torch.device(place).type == device
        return generate(size, stride, "cpu" if is_own else place, *rest)

    # The kernels are the same and accept host pointers.
    selector.generate_example_value = staticmethod(on_host)

    registered = registry._TEMPLATE_HEURISTIC_REGISTRY
    for key in [key for key in registered if key[1] == device]:
        del registered[key]  # choices of Triton kernels
    for template, of, operator in [*registered]:
        if of == "cpu" and template is not None:
            choices = registered[template, of, operator]
            registry.register_template_heuristic(template, device, op_name=operator)(
                choices
            )


@functools.cache
def _known() -> dict[str, dict[str, str]]:
    """Reads the hash of each source for each supported version of torch."""
    file = resources.files("openreg_inductor") / "_sources.json"
    known: dict[str, dict[str, str]] = json.loads(file.read_text(encoding="utf-8"))
    return known


def _is_known(path: str, versions: Sequence[str] = ()) -> bool:
    """Returns whether a source is the same as in one of the versions of torch."""
    found = _hash(path)
    return any(_known()[each].get(path) == found for each in versions or _known())


def _check(paths: Sequence[str], versions: Sequence[str] = ()) -> None:
    """Compares sources with their hashes in versions of torch, by default in all."""
    changed = [path for path in paths if not _is_known(path, versions)]
    if changed:
        own, torch = (metadata.version(p) for p in ("openreg-inductor", "torch"))
        raise UpstreamChangedError(
            f"openreg-inductor {own} was written for torch "
            f"{', '.join(versions or _known())}. In "
            f"torch {torch} these functions have changed: {', '.join(changed)}. "
            "Compiled kernels may be wrong for the device; "
            'backend="aot_eager" works'
        )


def _hash(path: str) -> str:
    """Returns the hash of a source; empty if it is missing."""
    try:
        source = inspect.getsource(_find(path))
    except (ImportError, AttributeError, OSError, TypeError):
        return ""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def _find(path: str) -> FunctionType:
    """Finds a function or class by module and name, without its decorators."""
    module, _, names = path.partition(":")
    if not module.startswith("torch."):
        module = f"torch._inductor.{module}"
    value: Any = importlib.import_module(module)
    for name in names.split("."):
        value = inspect.getattr_static(value, name)
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    found: FunctionType = inspect.unwrap(value)
    return found
