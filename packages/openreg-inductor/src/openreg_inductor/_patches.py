# SPDX-License-Identifier: BSD-3-Clause
"""Patches of Inductor for the device, and the functions that the package relies on.

Inductor compares device types with "cpu" in many places, for one of two reasons: memory
is host memory, or kernels are written in C++ and compute the CPU's results. The
functions listed here check for the second reason. Their constant "cpu" is replaced by a
string that also equals the device's name. The code of a function is changed in place,
which also affects modules that have imported it by name.

The module contains a hash of the source, as of torch 2.13.0, of each function that it
changes, overrides or reads. If one differs, nothing is changed. For another version of
torch, ``python -m openreg_inductor._patches`` prints the hashes.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from types import CodeType, FunctionType
from typing import Any

import torch


class UpstreamChangedError(RuntimeError):
    """A function of torch differs from the version that the package supports."""


# Functions whose "cpu" means C++ kernels with the CPU's results. In torch._inductor,
# unless another module is named.
# [docs: patches]
_ASK_FOR_CPP = {
    "choices:InductorChoices.get_config_heuristics": "0e9ab2160b6a6aef",
    "codecache:FxGraphHashDetails._contains_cpu_tensor": "09f4124093fe61d6",
    "codecache:FxGraphHashDetails._may_generate_cpu_cpp_code": "0a49a895e4d23310",
    "decomposition:addmm": "546717afce24e8e7",
    "decomposition:bmm": "2c254c0ded8eda9e",
    "decomposition:mm": "f044043439f9f24b",
    "ir:is_cpu": "7600732460adc67b",
    "kernel.bmm:tuned_bmm": "1a082048485e2aee",
    "kernel.conv:convolution": "5ed043f821a49812",
    "kernel.flex.flex_attention:flex_attention": "c210cc7e7a4d9dea",
    "lowering:_make_reduction_inner": "1c4d173a467e68a9",
    "lowering:_pad_as_cat": "8647724b1e4c3b18",
    "lowering:cat": "8dfd43fbf4ed0c26",
    "lowering:div_prim": "75e87a9bf283a7c2",
    "lowering:use_two_step_variance": "93f9bcc5e9663c2f",
    "scheduler:BaseSchedulerNode.is_cpu": "3abf458ee46f55f4",
    "scheduler:ForeachKernelSchedulerNode._default_group_nodes_for_combo_kernels": "58cb7e0e55d9664e",  # noqa: E501
    "scheduler:Scheduler.speedup_by_fusion": "bd0d9c08e8fff2c3",
    "select_algorithm:AlgorithmSelectorCache.__call__": "aee168252516a225",
    "select_algorithm:ExternKernelCaller.__init__": "bdd3b2a5654220a1",
    "torch._decomp.decompositions:native_batch_norm_helper": "7a9313061278ce60",
    "torch._refs:native_group_norm": "39fb60e3dda03ce9",
    "torch._refs:native_layer_norm": "fb16928a15094d2f",
    "utils:_use_template_for_cpu": "43d02368b1848d1f",
    "utils:get_current_backend": "3e7a48839289d439",
    "utils:use_scatter_fallback": "0094793d6601fb21",
}
# [docs: end]
# Functions whose "cuda" means a device that supports graphs.
_ASK_FOR_GRAPHS = {
    "cudagraph_utils:check_multiple_devices_or_any_cpu_nodes": "8c19bb03d41cdde0",
    "torch._dynamo.backends.cudagraphs:get_device_index": "23c82938fc332fc6",
}
# Functions of CUDA's graphs that are replaced when they are imported.
_GRAPHS = {
    "cudagraph_trees:cudagraphify_impl": "aca69fb50b4c8095",
    "cudagraph_trees:get_manager": "54fae48f17b852a9",
}
# The function of FlexAttention that is replaced on import, and its callers.
_ATTENTION = {
    "torch._higher_order_ops.flex_attention:_flex_attention_autocast_impl": "7cbdc3dc1071c5e8",  # noqa: E501
    "torch.amp.autocast_mode:_cast": "817481d361a8f18d",
    "torch.nn.attention.flex_attention:_apply_kernel_options": "cc5335cf1a2404dd",
    "torch.nn.attention.flex_attention:_validate_device": "f85d0c9ead4d0073",
}
# The function that passes CUDA's generator to random operators.
_TAKES_GENERATORS = "ir:ExternKernel.process_kernel"
# Functions and classes that the package derives from, reads or replaces.
_RELIED_ON = {
    "torch._functorch._aot_autograd.utils:get_default_generator": "2505ac089c68b5e5",
    "torch._higher_order_ops.flex_attention:_math_attention_inner": "93032d6083ed3d7f",
    "torch._higher_order_ops.flex_attention:_permute_strides": "57ad28222b07b080",
    "torch._higher_order_ops.flex_attention:create_fw_bw_graph": "5e0cf3fb9078f0ba",
    "torch._higher_order_ops.flex_attention:flex_attention_backward_fake_tensor_mode": "6a297e2f68b86f24",  # noqa: E501
    "torch._higher_order_ops.flex_attention:flex_attention_fake_impl": "da26162dcf28cd24",  # noqa: E501
    "torch._higher_order_ops.flex_attention:math_attention": "8b700acde5a840e6",
    "torch._higher_order_ops.flex_attention:sdpa_dense": "c9afca600f5135a7",
    "torch._higher_order_ops.flex_attention:sdpa_dense_backward": "3a5ea144c4bf2493",
    "torch._higher_order_ops.flex_attention:trace_flex_attention": "6406241e5a189ccf",
    "torch._higher_order_ops.flex_attention:trace_flex_attention_backward": "9da6b987f6c4b830",  # noqa: E501
    "async_compile:AsyncCompile.cpp_pybinding": "cc99f2574aeb5f9b",
    "codecache:CppCodeCache.load_async": "9ac835f9c8c0bdac",
    "codecache:CppPythonBindingsCodeCache": "93f2c3b90b91772f",
    "codegen.common:DeviceOpOverrides": "bbf1796c24d26f71",
    "codegen.common:KernelArgs.cpp_argdefs": "f8c0bd13b3bea6eb",
    "codegen.common:register_backend_for_device": "06b0018337d312c4",
    "codegen.cpp:CppKernel.codegen_conditions": "ef81cc84b8e3f08d",
    "codegen.cpp:CppKernelProxy": "50a30db5933f9eb3",
    "codegen.cpp:CppOverrides.floordiv": "9263dcc4d9fb2429",
    "codegen.cpp:CppScheduling.codegen_template": "b9c589d4319fcfd6",
    "codegen.cpp:CppScheduling.can_fuse_vertical": "a5e69dfc2a49a517",
    "codegen.cpp:CppScheduling.codegen_node": "f6b5dea1046bcd2c",
    "codegen.cpp:CppScheduling.define_kernel": "37b7943cbb771ad3",
    "codegen.cpp:CppScheduling.flush": "59f20c9f56f934c4",
    "codegen.cpp:CppVecKernel._get_mask_cast": "605576757a6254e7",
    "codegen.cpp:CppVecKernel._get_mask_type": "d56577156c0f2d3b",
    "codegen.cpp:CppVecKernel._get_num_vectors": "21dfffe9d26c73b8",
    "codegen.cpp:CppVecKernel.load": "1105641cb5303199",
    "codegen.cpp:CppVecKernel._get_vec_load_line": "874c8487f4c1dc83",
    "codegen.cpp:CppVecOverrides.__new__": "830f8c4a517a1c91",
    "codegen.cpp:CppVecOverrides.floordiv": "566bdffe10694abe",
    "codegen.cpp:KernelGroup": "34958dc65914e755",
    "codegen.cpp:LoopLevel.lines": "79ec544f12b90e85",
    "codegen.cpp:WorkSharing": "d8370346a3227ef3",
    "codecache:_get_cpp_wrapper_header": "44c4cea30d1816a3",
    "codegen.cpp_flex_attention_template:CppFlexAttentionTemplate.modification": "a5c3aa25b420c9e1",  # noqa: E501
    "codegen.cpp_template_kernel:CppTemplateKernel.define_buffer": "4a97f04c67871494",
    "codegen.cpp_template_kernel:CppTemplateKernel.store_output": "72ecf3c8e0053e47",
    "codegen.cpp_template_kernel:CppTemplateKernel.store_pointwise_nodes": "cc9e48faf1452c74",  # noqa: E501
    "codegen.cpp_template_kernel:CppTemplateKernel.store_grouped_gemm_pointwise_nodes": "0c5762f08c758089",  # noqa: E501
    "codegen.cpp_wrapper_cpu:CppWrapperCpu._define_kernel_helper": "45d640c49625ae4f",
    "codegen.cpp_wrapper_cpu:CppWrapperCpu._generate_end_jit": "4dea137f2b74d965",
    "codegen.cpp_wrapper_cpu:CppWrapperCpu._generate_kernel_call_helper": "8e8f683096a4df27",  # noqa: E501
    "codegen.cpp_wrapper_cpu:CppWrapperCpu.add_device_include": "5ea89b471143431e",
    "codegen.cpp_wrapper_cpu:CppWrapperCpu.codegen_device": "7c00cd7c1489c0e9",
    "codegen.cpp_wrapper_cpu:CppWrapperCpu.codegen_device_idx": "0ae53eecb1602521",
    "codegen.cpp_wrapper_cpu:CppWrapperCpu.create": "7764c6882098232d",
    "codegen.cpp_wrapper_cpu:CppWrapperCpu.get_c_shim_func_name": "dd7e3a55a3cbe051",
    "codegen.wrapper:EnterDeviceContextManagerLine.codegen": "a776d1da77aa8027",
    "cpp_builder:get_cpp_torch_device_options": "147de27ff79f015c",
    "codegen.wrapper:PythonWrapperCodegen._generate_kernel_call_helper": "67a1f2491e7a957a",  # noqa: E501
    "codegen.wrapper:PythonWrapperCodegen.create": "c8d716f76315883f",
    "codegen.wrapper:PythonWrapperCodegen.make_allocation": "99e925fd3e818f7b",
    "codegen.wrapper:PythonWrapperCodegen.write_header": "d6fd237aaaa5c835",
    "codegen.wrapper:SubgraphPythonWrapperCodegen": "47d1dd7a0f6617da",
    "fx_passes.post_grad:post_grad_passes": "442e38b4b56d93d5",
    _TAKES_GENERATORS: "9e295c1f26fb711d",
    "graph:GraphLowering.decide_layout_opt": "bef90675b8c18d39",
    "kernel.flex.flex_cpu:check_cpu_supported": "c41dcf9f3e7b8431",
    "kernel.flex.flex_cpu:lower_cpu": "0c7dbb0aef7013ce",
    "lowering:addcdiv": "0448b8195354c0a5",
    "lowering:addcmul": "4ec08c5b9ae0d10f",
    "lowering:register_foreach_pointwise": "d4e7c108404f781b",
    "lowering:make_pointwise": "c6b4e7d7d661b15b",
    "scheduler:Scheduler._codegen": "28c7c9e114462bb2",
    "scheduler:BaseSchedulerNode.is_gpu": "7a35d07c81f86bdd",
    "scheduler:Scheduler.should_partition": "b953e7d6020b098f",
    "scheduler:Scheduler._has_multi_stream_nodes": "26c258b3f72e2600",
    "select_algorithm:AlgorithmSelectorCache.generate_example_value": "ec1e88f807e56d80",  # noqa: E501
    "template_heuristics.registry:register_template_heuristic": "a10c3fb19a7440ba",
    "utils:device_need_guard": "b39413cad80d0aea",
}


def apply(device: str) -> None:
    """Makes Inductor generate C++ kernels for the device; once per process.

    Args:
        device: The device name.

    Raises:
        UpstreamChangedError: If a function differs from torch 2.13.0; nothing is
            changed then.
    """
    _check(_ASK_FOR_CPP | _ASK_FOR_GRAPHS | _RELIED_ON)
    for name, paths in (("cpu", _ASK_FOR_CPP), ("cuda", _ASK_FOR_GRAPHS)):
        for path in paths:
            function = _find(path)
            function.__code__ = _with_constant(
                function.__code__, _EqualTo(name, device)
            )
    _allow_graph_partitions(device)
    _register_autotuning(device)
    _accept_generators_of_any_device()

    graph: Any = importlib.import_module("torch._inductor.graph")
    scheduler: Any = importlib.import_module("torch._inductor.scheduler")
    # Convolutions use channels_last, as on the CPU.
    graph.SUPPORTED_MKLDNN_DEVICES += (device,)
    _keep_result_on_device(device)
    _store_template_buffers_on_device(device)
    needs_guard = scheduler.device_need_guard
    scheduler.device_need_guard = lambda name: name == device or needs_guard(name)


def _keep_result_on_device(device: str) -> None:
    """Places the result of an operator with CPU scalars on the device.

    Inductor uses the device of a GPU argument, else the device of the first argument.
    addcmul and addcdiv, and their foreach variants, always use the first argument.
    """
    lowering: Any = importlib.import_module("torch._inductor.lowering")
    is_gpu = lowering.is_gpu  # only make_pointwise() calls it
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
    function = _find(_TAKES_GENERATORS)
    source = textwrap.dedent(inspect.getsource(function))
    for name in ("arg", "x"):
        source = source.replace(f'assert {name}.device.type == "cuda" and ', "assert ")
        source = source.replace(
            "torch.cuda.default_generators[device_index]",
            "torch._functorch._aot_autograd.utils.get_default_generator"
            f"({name}.device)",
            1,
        )
    source = "\n" * (function.__code__.co_firstlineno - 1) + source  # for tracebacks
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
    code = _find("scheduler:Scheduler.should_partition").__code__
    names = tuple(
        "openreg_has_graphs" if name == "is_gpu" else name for name in code.co_names
    )
    _find("scheduler:Scheduler.should_partition").__code__ = code.replace(
        co_names=names
    )


def check_graphs() -> None:
    """Checks that ``cudagraph_trees`` is the supported version.

    Raises:
        UpstreamChangedError: If it differs.
    """
    _check(_GRAPHS)


def knows_attention() -> bool:
    """Returns whether FlexAttention is the supported version."""
    return all(_hash(path) == known for path, known in _ATTENTION.items())


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

    for template, of, operator in [*registry._TEMPLATE_HEURISTIC_REGISTRY]:
        if of == "cpu" and template is not None:
            choices = registry._TEMPLATE_HEURISTIC_REGISTRY[template, of, operator]
            registry.register_template_heuristic(template, device, op_name=operator)(
                choices
            )


def _check(expected: Mapping[str, str]) -> None:
    """Compares sources with their hashes."""
    changed = [path for path, known in expected.items() if _hash(path) != known]
    if changed:
        own, torch = (metadata.version(p) for p in ("openreg-inductor", "torch"))
        raise UpstreamChangedError(
            f"openreg-inductor {own} was written for torch 2.13.0. In torch {torch} "
            f"these functions have changed: {', '.join(changed)}. Compiled "
            'kernels may be wrong for the device; backend="aot_eager" works'
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


def _hashes() -> Iterator[str]:
    for path in [
        *_ASK_FOR_CPP,
        *_ASK_FOR_GRAPHS,
        *_GRAPHS,
        *_ATTENTION,
        *_RELIED_ON,
    ]:
        yield f'    "{path}": "{_hash(path)}",'


if __name__ == "__main__":
    import torch._inductor.compile_fx

    print(*_hashes(), sep="\n")  # noqa: T201  (a program)
