// SPDX-License-Identifier: BSD-3-Clause
// Copies in every direction, with any change of dtype, layout or shape, and the
// read of one element.
//
// The CPU's copy_ runs over the kernel mapping, so a copy between host and
// device is one pass over the data, and conj and neg bits are resolved on the
// way.
#include "ops/copy.h"

#include "device/device.h"
#include "device/host_allocator.h"
#include "device/stream_event.h"
#include "kernel/cpu_aliases.h"
#include "kernel/cpu_allocator.h"
#include "kernel/enqueue.h"
#include "kernel/kernel.h"
#include "mechanism.h"

#include <ATen/Dispatch_v2.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/copy_native.h>
#include <torch/library.h>

namespace openreg::aten {
namespace {

bool on_device(const at::Tensor& tensor) {
  return tensor.device().type() == c10::kPrivateUse1;
}

void check_device_type(const at::Tensor& tensor, const char* argument) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      on_device(tensor) || tensor.device().is_cpu(),
      "copy_ between device types ",
      c10::kPrivateUse1,
      " and ",
      tensor.device().type(),
      " is not supported (argument ",
      argument,
      ")");
}

void run_copy(c10::DeviceIndex device, at::Tensor& dst, const at::Tensor& src) {
  const KernelScope scope(device);
  at::native::copy_(dst, src, /*non_blocking=*/false);
}

/// Enqueues a copy between host and device. As on CUDA, only a copy from or to
/// pinned memory leaves the host free; false if it is none. Device memory is
/// kept by the order of its stream, or by record_stream().
bool enqueue_copy(const at::Tensor& dst, const at::Tensor& src) {
  const at::Tensor& host = on_device(dst) ? src : dst;
  const c10::DeviceIndex device = (on_device(dst) ? dst : src).device().index();
  if (!host.is_pinned() || !at::is_expandable_to(src.sizes(), dst.sizes())) {
    return false; // a wrong shape is an error of the call
  }
  const c10::Stream stream = current_stream(device);
  if (!record_pinned_use(host.storage(), stream)) {
    return false; // registered by the program, which may free it at any time
  }
  CpuAliases aliases(device);
  enqueue_on_current_stream(
      device,
      [to = on_device(dst) ? aliases.alias(dst, true) : borrow(dst),
       from =
           on_device(src) ? aliases.alias(src, false) : borrow(src)]() mutable {
        const EnqueuedKernelScope scope({});
        at::native::copy_(to, from, /*non_blocking=*/false);
      });
  return true;
}

/// Whether the CPU's copy refuses it: elements that overlap.
bool overlaps(const at::Tensor& dst, const at::Tensor& src) {
  return at::has_internal_overlap(dst) == at::MemOverlap::Yes ||
      at::get_overlap_status(dst, src) == at::MemOverlapStatus::Partial;
}

/// Enqueues a copy within a device or between two, like any operator; false if
/// it is not worth that. As on CUDA, the current stream of the source copies,
/// after what that of the destination has, which goes on after the copy.
bool enqueue_between_devices(const at::Tensor& dst, const at::Tensor& src) {
  const c10::DeviceIndex source = src.device().index();
  const c10::DeviceIndex target = dst.device().index();
  if (dst.is_quantized() || src.is_quantized() ||
      !at::is_expandable_to(src.sizes(), dst.sizes()) || overlaps(dst, src) ||
      runs_here(source) || runs_here(target) ||
      !(enqueues(source, dst.nbytes() + src.nbytes()) ||
        (source != target && enqueues(target, 0)))) {
    return false;
  }
  CpuAliases aliases(target);
  at::Tensor to = aliases.alias(dst, true);
  const at::Tensor from = aliases.alias(src, false);
  std::vector<CpuAliasPtr> kept;
  aliases.move_aliases(kept);
  if (source != target) {
    StreamEvent(current_handle(target)).hold(current_handle(source));
  }
  enqueue_on_current_stream(
      source, [to = std::move(to), from, kept = std::move(kept)]() mutable {
        const EnqueuedKernelScope scope({});
        at::native::copy_(to, from, /*non_blocking=*/false);
      });
  if (source != target) {
    StreamEvent(current_handle(source)).hold(current_handle(target));
  }
  return true;
}

} // namespace

at::Tensor&
copy_tensor(at::Tensor& self, const at::Tensor& src, bool non_blocking) {
  check_device_type(self, "self");
  check_device_type(src, "src");
  TORCH_CHECK(
      !self._is_zerotensor(),
      "ZeroTensors are immutable. Please materialize the tensor using "
      "`.clone()`, if you want a mutable zero tensor.");
  // A lazily copied storage gets a buffer of its own before it is held or seen.
  self.storage().unsafeGetStorageImpl()->mutable_data();
  if (non_blocking && on_device(self) != on_device(src) &&
      enqueue_copy(self, src)) {
    return self;
  }
  const c10::DeviceIndex device =
      (on_device(self) ? self : src).device().index();
  if (on_device(self) && on_device(src) && enqueue_between_devices(self, src)) {
    return self;
  }
  if (on_device(self) && on_device(src) && self.device() != src.device()) {
    // What the other device still computes on src comes first.
    synchronize_current_stream(src.device().index());
  } else if (!on_device(self)) {
    // The host is about to look: what failed earlier on the stream is reported.
    synchronize_current_stream(device);
  }
  CpuAliases aliases(device);
  at::Tensor to = on_device(self) ? aliases.alias(self, true) : self;
  const at::Tensor from = on_device(src) ? aliases.alias(src, false) : src;
  run_on_current_stream(device, [&] { run_copy(device, to, from); });
  return self;
}

namespace {

at::Tensor
copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  at::Tensor result = dst;
  return copy_tensor(result, self, non_blocking);
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  at::Tensor result = dst;
  result.resize_(self.sizes());
  return copy_tensor(result, self, /*non_blocking=*/false);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  TORCH_CHECK(self.numel() > 0, "Empty tensor not supported");
  const void* data = to_kernel(self.const_data_ptr());
  synchronize_current_stream(self.device().index()); // reports what failed
  at::Scalar result; // read here: all work of the stream is completed
  AT_DISPATCH_V2(
      self.scalar_type(),
      "_local_scalar_dense",
      AT_WRAP([&] { result = *static_cast<const scalar_t*>(data); }),
      AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX),
      AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES),
      AT_EXPAND(AT_FLOAT8_TYPES),
      at::kComplexHalf,
      at::kHalf,
      at::kBool,
      at::kBFloat16);
  return result;
}

} // namespace

OPENREG_MECHANISM(
    copy,
    "TORCH_LIBRARY_IMPL(aten, PrivateUse1): copies",
    "data does not reach the device or come back: to, cpu, print") {
  static auto library = MAKE_TORCH_LIBRARY_IMPL(aten, PrivateUse1);
  library.impl("copy_", TORCH_FN(copy_tensor));
  library.impl("_copy_from", TORCH_FN(copy_from));
  library.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  library.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
}

} // namespace openreg::aten
