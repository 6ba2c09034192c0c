// SPDX-License-Identifier: BSD-3-Clause
// Quantized tensors: the CPU kernels run on device bytes. The quantizer of a
// tensor is on the host, except the scales and zero points per channel.
#include "alias/quantizer.h"
#include "base/keys.h"
#include "base/mechanism.h"
#include "device/device.h"
#include "memory/allocator.h"
#include "ops/copy.h"
#include "ops/over_composites.h"

#include <ATen/ops/_empty_affine_quantized_native.h>
#include <ATen/ops/_empty_per_channel_affine_quantized_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/_to_copy_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty_like_native.h>
#include <ATen/ops/empty_native.h>
#include <ATen/ops/empty_quantized_native.h>
#include <ATen/ops/q_per_channel_axis_native.h>
#include <ATen/ops/q_per_channel_scales_native.h>
#include <ATen/ops/q_per_channel_zero_points_native.h>
#include <ATen/ops/q_scale_native.h>
#include <ATen/ops/q_zero_point_native.h>
#include <ATen/ops/qscheme_native.h>
#include <ATen/ops/squeeze_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/unsqueeze_native.h>
#include <ATen/ops/view_native.h>
#include <ATen/quantized/QTensorImpl.h>

namespace openreg::aten {
namespace {

at::QTensorImpl& impl_of(const at::Tensor& tensor) {
  return static_cast<at::QTensorImpl&>(*tensor.unsafeGetTensorImpl());
}

// ---- new tensors -----------------------------------------------------------

/// Returns a quantized tensor from PyTorch's function, which allocates on the
/// current device, or host memory on any device if the engine is QNNPACK.
template <auto function, typename... Args>
at::Tensor make(std::optional<c10::Device> device, const Args&... args) {
  if (!device || device->type() != kDeviceType) {
    return function(args...);
  }
  const c10::Device where = with_index(*device);
  check_device(where.index());
  const CurrentDevice scope(where.index());
  at::Tensor made = function(args...);
  c10::StorageImpl& storage = *made.storage().unsafeGetStorageImpl();
  if (C10_UNLIKELY(storage.device_type() != kDeviceType)) {
    storage.set_data_ptr_noswap(own_block(
        where.index(), allocate_block(where.index(), storage.nbytes())));
    storage.set_allocator(&device_allocator());
    made.unsafeGetTensorImpl()->set_storage_keep_dtype(made.storage());
  }
  return made;
}

at::Tensor empty_quantized(
    at::IntArrayRef size,
    std::optional<at::ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory,
    std::optional<c10::MemoryFormat> memory_format) {
  return make<&at::native::empty_unknown_quantized>(
      device, size, dtype, layout, device, pin_memory, memory_format);
}

at::Tensor empty_affine(
    at::IntArrayRef size,
    std::optional<at::ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory,
    double scale,
    int64_t zero_point,
    std::optional<c10::MemoryFormat> memory_format) {
  return make<&at::native::empty_affine_quantized>(
      device,
      size,
      dtype,
      layout,
      device,
      pin_memory,
      scale,
      zero_point,
      memory_format);
}

/// Also called if only the scales are on the device. The tensor may be on the
/// CPU.
at::Tensor empty_per_channel_affine(
    at::IntArrayRef size,
    const at::Tensor& scales,
    const at::Tensor& zero_points,
    int64_t axis,
    std::optional<at::ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory,
    std::optional<c10::MemoryFormat> memory_format) {
  return make<&at::native::empty_per_channel_affine_quantized>(
      device,
      size,
      scales,
      zero_points,
      axis,
      dtype,
      layout,
      device,
      pin_memory,
      memory_format);
}

// ---- copies ----------------------------------------------------------------

/// Returns the values of a quantized tensor as an integer tensor, which is
/// copied as any other. A dtype smaller than a byte is returned unchanged,
/// because no kernel copies it.
at::Tensor plain(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  const at::ScalarType dtype = tensor.scalar_type();
  const bool is_packed = dtype == at::kQUInt4x2 || dtype == at::kQUInt2x4;
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(impl.storage()),
      c10::DispatchKeySet(
          tensor.device().is_cpu() ? c10::DispatchKey::CPU : kDenseKey),
      is_packed ? impl.dtype()
                : c10::scalarTypeToTypeMeta(c10::toUnderlying(dtype)));
  made.unsafeGetTensorImpl()->set_sizes_and_strides(
      impl.sizes(), impl.strides(), impl.storage_offset());
  return made;
}

at::Tensor& copy_(at::Tensor& self, const at::Tensor& src, bool non_blocking) {
  if (self.is_same(src)) {
    return self;
  }
  if (!src.is_quantized()) { // then self is quantized
    return copy_tensor(self, src, /*non_blocking=*/false);
  }
  TORCH_CHECK(
      self.is_quantized(),
      "Copying from quantized Tensor to non-quantized Tensor is not allowed, "
      "please use dequantize to get a float Tensor from a quantized Tensor");
  at::QuantizerPtr quantizer = impl_of(src).quantizer();
  TORCH_CHECK(
      self.qscheme() == quantizer->qscheme(),
      "Quantized Copy only works with same qscheme");
  TORCH_CHECK(
      self.scalar_type() == src.scalar_type(),
      "Quantized Copy only works with same dtype, got ",
      self.scalar_type(),
      " and ",
      src.scalar_type());
  plain(self).copy_(plain(src), non_blocking);
  if (self.device() != src.device()) {
    quantizer = convert_quantizer(quantizer, [&](const at::Tensor& component) {
      return component.to(self.device());
    });
  }
  impl_of(self).set_quantizer_(quantizer);
  return self;
}

/// PyTorch's function does not move a quantized tensor with gaps.
at::Tensor to_copy(
    const at::Tensor& self,
    std::optional<at::ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory,
    bool non_blocking,
    std::optional<c10::MemoryFormat> memory_format) {
  const bool dense = self.is_non_overlapping_and_dense();
  return at::native::_to_copy(
      dense ? self : self.contiguous(),
      dtype,
      layout,
      device,
      pin_memory,
      non_blocking,
      memory_format);
}

} // namespace

// [docs: quantized]
OPENREG_MECHANISM(
    quantized,
    "TORCH_LIBRARY_IMPL(_, QuantizedPrivateUse1): fallback",
    "quantized tensors can be created but not used") {
  using c10::DispatchKey;
  static auto fallback = OPENREG_LIBRARY_IMPL(_, kQuantizedKey);
  fallback.fallback(
      torch::CppFunction::makeFromBoxedFunction<
          &run_cpu_kernel<DispatchKey::QuantizedCPU>>());
  // [docs: end]
  namespace native = at::native;
  static auto library = OPENREG_LIBRARY_IMPL(aten, kQuantizedKey);
  library.impl("empty.memory_format", TORCH_FN(empty_quantized));
  library.impl("_empty_affine_quantized", TORCH_FN(empty_affine));
  library.impl(
      "_empty_per_channel_affine_quantized",
      TORCH_FN(empty_per_channel_affine));
  // These call the ones above, possibly for another device.
  library.impl("empty_quantized", TORCH_FN(native::empty_quantized));
  library.impl("empty_like", TORCH_FN(native::empty_like_quantized));
  library.impl("_to_copy", TORCH_FN(to_copy));
  library.impl("copy_", TORCH_FN(copy_));
  // The quantizer is on the host.
  library.impl("qscheme", TORCH_FN(native::qscheme_quant));
  library.impl("q_scale", TORCH_FN(native::q_scale_quant));
  library.impl("q_zero_point", TORCH_FN(native::q_zero_point_quant));
  library.impl("q_per_channel_axis", TORCH_FN(native::q_per_channel_axis));
  library.impl("q_per_channel_scales", TORCH_FN(native::q_per_channel_scales));
  library.impl(
      "q_per_channel_zero_points", TORCH_FN(native::q_per_channel_zero_points));
  // Views share the quantizer, or get one for the new channel dimension.
  library.impl("as_strided", TORCH_FN(native::as_strided_qtensorimpl));
  library.impl("view", TORCH_FN(native::view));
  library.impl("_reshape_alias", TORCH_FN(native::_reshape_alias));
  library.impl("unfold", TORCH_FN(native::unfold));
  using Squeeze = at::Tensor(const at::Tensor&);
  using SqueezeDim = at::Tensor(const at::Tensor&, int64_t);
  using SqueezeDims = at::Tensor(const at::Tensor&, at::IntArrayRef);
  library.impl("squeeze", static_cast<Squeeze*>(&native::squeeze_quantized));
  library.impl(
      "squeeze.dim", static_cast<SqueezeDim*>(&native::squeeze_quantized));
  library.impl(
      "squeeze.dims", static_cast<SqueezeDims*>(&native::squeeze_quantized));
  library.impl("unsqueeze", TORCH_FN(native::unsqueeze_quantized));
  register_over_composites<DispatchKey::QuantizedCPU>(library);
}

} // namespace openreg::aten
