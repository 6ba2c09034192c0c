// SPDX-License-Identifier: BSD-3-Clause
// The copies around the transfer of bytes.
#include "ops/transfer.h"

#include "memory/host_allocator.h"
#include "stream/bytes.h"
#include "stream/stream.h"
#include "stream/stream_event.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

namespace openreg::aten {
namespace {

bool has_bits(const at::Tensor& tensor) {
  return tensor.is_conj() || tensor.is_neg();
}

/// Whether the elements are contiguous bytes without gaps.
bool is_one_piece(const at::Tensor& tensor) {
  return tensor.is_non_overlapping_and_dense() && !has_bits(tensor);
}

/// Whether two tensors have the same bytes.
bool have_same_bytes(const at::Tensor& one, const at::Tensor& other) {
  return is_one_piece(one) && is_one_piece(other) &&
      one.scalar_type() == other.scalar_type() &&
      one.sizes() == other.sizes() && one.strides() == other.strides();
}

/// Returns an empty contiguous tensor like `tensor` on another device.
at::Tensor piece_like(
    const at::Tensor& tensor,
    at::ScalarType dtype,
    at::Device device,
    bool pinned = false) {
  const auto options =
      at::TensorOptions().dtype(dtype).device(device).pinned_memory(pinned);
  if (tensor.is_non_overlapping_and_dense()) {
    return at::empty_strided(tensor.sizes(), tensor.strides(), options);
  }
  return at::empty(tensor.sizes(), options);
}

/// Returns the tensor, or a contiguous copy on the same device.
at::Tensor in_one_piece(const at::Tensor& tensor) {
  if (is_one_piece(tensor)) {
    return tensor;
  }
  at::Tensor piece = piece_like(tensor, tensor.scalar_type(), tensor.device());
  piece.copy_(tensor);
  return piece;
}

/// Throws the error of the CPU's copy_ about shapes that do not match.
void check_shapes(const at::Tensor& dst, const at::Tensor& src) {
  if (at::is_expandable_to(src.sizes(), dst.sizes())) {
    return;
  }
  const auto both = at::infer_size(dst.sizes(), src.sizes());
  TORCH_CHECK(
      false,
      "output with shape ",
      dst.sizes(),
      " doesn't match the broadcast shape ",
      at::IntArrayRef(both));
}

/// Copies from one device to another, in the order of both current streams. As
/// on CUDA, the stream of the source copies, and later work of the stream of
/// the destination waits for the copy.
void transfer_bytes(const at::Tensor& dst, const at::Tensor& src) {
  const c10::DeviceIndex source = src.device().index();
  const c10::DeviceIndex target = dst.device().index();
  StreamEvent(current_handle(target)).hold(current_handle(source));
  enqueue_copy(source, dst.data_ptr(), src.const_data_ptr(), dst.nbytes());
  StreamEvent(current_handle(source)).hold(current_handle(target));
}

/// Copies floats to the device of a quantized tensor, which quantizes them
/// there.
void transfer_floats(at::Tensor& dst, const at::Tensor& src) {
  at::Tensor floats = piece_like(src, src.scalar_type(), dst.device());
  floats.copy_(src);
  dst.copy_(floats);
}

} // namespace

void transfer_with_host(at::Tensor& dst, const at::Tensor& src, bool async) {
  const bool to_device = !dst.is_cpu();
  const c10::DeviceIndex device = (to_device ? dst : src).device().index();
  if (dst.is_quantized()) {
    return transfer_floats(dst, src);
  }
  check_shapes(dst, src);
  const auto expanded = at::expand_inplace(dst, src, "copy_");
  const at::Tensor& from = *expanded;
  if (dst.numel() == 0) {
    return;
  }
  if (have_same_bytes(dst, from)) {
    copy_bytes(
        device, dst.data_ptr(), from.const_data_ptr(), dst.nbytes(), async);
    return;
  }
  if (to_device) {
    const at::Tensor piece =
        piece_like(dst, dst.scalar_type(), at::kCPU, /*pinned=*/async);
    piece.copy_(from);
    if (async) {
      record_pinned_use(piece.storage(), current_stream(device));
    }
    const at::Tensor there = is_one_piece(dst)
        ? dst
        : piece_like(piece, dst.scalar_type(), dst.device());
    copy_bytes(
        device,
        there.data_ptr(),
        piece.const_data_ptr(),
        piece.nbytes(),
        async);
    if (!there.is_same(dst)) {
      dst.copy_(there);
    }
    return;
  }
  if (is_one_piece(dst)) {
    const at::Tensor there = piece_like(dst, dst.scalar_type(), src.device());
    there.copy_(from);
    copy_bytes(
        device, dst.data_ptr(), there.const_data_ptr(), dst.nbytes(), async);
    return;
  }
  const at::Tensor there = in_one_piece(from);
  at::Tensor piece = piece_like(there, there.scalar_type(), at::kCPU);
  copy_bytes(device, piece.data_ptr(), there.const_data_ptr(), piece.nbytes());
  dst.copy_(piece);
}

void transfer_between_devices(at::Tensor& dst, const at::Tensor& src) {
  if (dst.is_quantized()) {
    return transfer_floats(dst, src);
  }
  check_shapes(dst, src);
  const auto expanded = at::expand_inplace(dst, src, "copy_");
  if (dst.numel() == 0) {
    return;
  }
  at::Tensor from = *expanded;
  if (from.scalar_type() != dst.scalar_type() || !is_one_piece(from)) {
    at::Tensor piece = piece_like(from, dst.scalar_type(), src.device());
    piece.copy_(from);
    from = piece;
  }
  at::Tensor to = have_same_bytes(dst, from)
      ? dst
      : piece_like(from, dst.scalar_type(), dst.device());
  transfer_bytes(to, from);
  if (!to.is_same(dst)) {
    dst.copy_(to);
  }
}

} // namespace openreg::aten
