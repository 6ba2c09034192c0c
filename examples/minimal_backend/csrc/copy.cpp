// SPDX-License-Identifier: BSD-3-Clause
// Copies between host and device and within a device. Tensor.copy_ calls _copy_from.
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <torch/library.h>

#include <cstring>

#include "runtime.h"

namespace torch_minimal {
namespace {

// [docs: transfer]
void transfer(void* dst, const void* src, size_t bytes, c10::DeviceIndex device, bool wait) {
  const orStream_t stream = current_handle(device);
  check(orMemcpyAsync(dst, src, bytes, orMemcpyDefault, stream));
  if (wait) check(orStreamSynchronize(stream));
}

/// Copies all bytes from a tensor's first element to its last to the host.
at::Tensor read(const at::Tensor& tensor) {
  at::Tensor host =
      at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
  transfer(host.mutable_data_ptr(), tensor.const_data_ptr(), host.storage().nbytes(),
           tensor.device().index(), /*wait=*/true);
  host._set_conj(tensor.is_conj());
  host._set_neg(tensor.is_neg());
  return host;
}

const char* kernel_pointer(const void* data) {
  void* pointer = nullptr; // the address that kernels use
  check(orGetKernelPointer(&pointer, data));
  return static_cast<const char*>(pointer);
}

/// Enqueues a kernel that writes a contiguous tensor into a tensor of any strides.
/// Other tensors may use the bytes between its elements.
void scatter(const at::Tensor& from, const at::Tensor& to) {
  const char* in = kernel_pointer(from.const_data_ptr());
  char* out = const_cast<char*>(kernel_pointer(to.mutable_data_ptr()));
  const size_t bytes = to.element_size();
  check(orLaunchKernel(
      current_handle(to.device().index()),
      [=, count = to.numel(), sizes = to.sizes().vec(), strides = to.strides().vec()] {
        for (int64_t i = 0; i < count; ++i) {
          int64_t place = 0;
          int64_t rest = i;
          for (size_t dim = sizes.size(); dim-- > 0; rest /= sizes[dim]) {
            place += rest % sizes[dim] * strides[dim];
          }
          std::memcpy(out + place * bytes, in + i * bytes, bytes);
        }
      }));
}
// [docs: end]

// [docs: copy-from]
at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst,
                     [[maybe_unused]] bool non_blocking) {
  if (dst.numel() == 0) return dst;
  at::assert_no_internal_overlap(dst);
  at::assert_no_partial_overlap(dst, self);
  const c10::DeviceIndex device = (dst.is_cpu() ? self : dst).device().index();
  const bool between_devices = !self.is_cpu() && !dst.is_cpu() && self.device() != dst.device();
  bool wait = true;
  // [step 8]
  // Stream order covers later work on the device. The host must wait before it uses its
  // side of the copy, unless the caller does that; the driver waits for pageable memory.
  wait = between_devices || (self.device() != dst.device() && !non_blocking);
  // [step end]
  if (between_devices) check(orStreamSynchronize(current_handle(self.device().index())));
  if (self.dtype() == dst.dtype() && self.sizes() == dst.sizes() &&
      self.strides() == dst.strides() && dst.is_non_overlapping_and_dense() &&
      self.is_conj() == dst.is_conj() && self.is_neg() == dst.is_neg()) {
    transfer(dst.mutable_data_ptr(), self.const_data_ptr(), dst.nbytes(), device, wait);
    return dst;
  }
  const at::Tensor source = self.is_cpu() ? self : read(self);
  if (dst.is_cpu()) return dst.copy_(source.expand(dst.sizes()));
  const at::Tensor host = at::empty(dst.sizes(), dst.options().device(at::kCPU));
  host._set_conj(dst.is_conj());
  host._set_neg(dst.is_neg());
  host.copy_(source.expand(dst.sizes()));
  const at::Tensor dense =
      dst.is_contiguous() ? dst : at::empty_strided(dst.sizes(), host.strides(), dst.options());
  transfer(dense.mutable_data_ptr(), host.const_data_ptr(), host.nbytes(), device,
           /*wait=*/true);
  if (!dense.is_same(dst)) scatter(dense, dst);
  return dst;
}

/// cpu_fallback() calls this to write modified arguments back.
at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  if (self.sizes() != dst.sizes()) dst.resize_(self.sizes());
  return copy_from(self, dst, /*non_blocking=*/false);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
}
// [docs: end]

// [docs: math-bits]
// copy_from() handles the conjugate and negative bits itself. PyTorch's kernels for
// these keys clone the tensor, and the clone calls _copy_from again, without end.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
// [docs: end]

} // namespace
} // namespace torch_minimal
