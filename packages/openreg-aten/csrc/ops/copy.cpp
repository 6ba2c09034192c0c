// SPDX-License-Identifier: BSD-3-Clause
// Copies in every direction, with any change of dtype, layout or shape, and
// reads of one element.
//
// Where kernels can access device memory, the CPU's copy_ runs over the kernel
// mapping. A copy between host and device is then one pass over the data, which
// also resolves conj and neg bits.
#include "ops/copy.h"

#include "alias/cpu_aliases.h"
#include "alias/extent.h"
#include "base/keys.h"
#include "base/mechanism.h"
#include "base/torch_version.h"
#include "call/dispatch_paths.h"
#include "call/enqueue.h"
#include "call/submit.h"
#include "device/activity.h"
#include "device/device.h"
#include "memory/host_allocator.h"
#include "ops/transfer.h"
#include "stream/bytes.h"
#include "stream/capture.h"
#include "stream/stream.h"
#include "stream/stream_event.h"

#include <ATen/Dispatch_v2.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/zero.h>
#include <torch/library.h>

#include <array>
#include <atomic>
#include <cstring>
#include <optional>

namespace openreg::aten {
namespace {

bool on_device(const at::Tensor& tensor) {
  return tensor.device().type() == kDeviceType;
}

void check_device_type(const at::Tensor& tensor, const char* argument) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      on_device(tensor) || tensor.device().is_cpu(),
      "copy_ between device types ",
      kDeviceType,
      " and ",
      tensor.device().type(),
      " is not supported (argument ",
      argument,
      ")");
}

void check_extent(
    const at::Tensor& tensor,
    const char* op,
    const char* argument) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (C10_UNLIKELY(tensor.has_storage() && !lies_in_storage(impl))) {
    throw_outside_storage(impl, op, argument);
  }
}

/// Whether the CPU's copy rejects the tensors, because elements overlap.
bool overlaps(const at::Tensor& dst, const at::Tensor& src) {
  return at::has_internal_overlap(dst) == at::MemOverlap::Yes ||
      at::get_overlap_status(dst, src) == at::MemOverlapStatus::Partial;
}

/// Throws the CPU's error about a pair of dtypes without a copy. An enqueued
/// copy would raise it in a later call. The first copy of a pair tries it with
/// one element.
void check_dtypes(c10::ScalarType to, c10::ScalarType from) {
  constexpr auto kDtypes = static_cast<size_t>(c10::ScalarType::NumOptions);
  static_assert(kDtypes <= 64);
  static std::array<std::atomic<uint64_t>, kDtypes> known{};
  const uint64_t bit = uint64_t{1} << static_cast<unsigned>(from);
  auto& known_to = known.at(static_cast<size_t>(to));
  if (C10_LIKELY((known_to.load(std::memory_order_relaxed) & bit) != 0)) {
    return;
  }
  const auto zero = [](c10::ScalarType dtype) {
    at::Tensor made = at::detail::empty_cpu({1}, at::TensorOptions(dtype));
    std::memset(made.mutable_data_ptr(), 0, made.nbytes());
    return made;
  };
  at::Tensor target = zero(to);
  at::native::copy_(target, zero(from), /*non_blocking=*/false);
  known_to.fetch_or(bit, std::memory_order_relaxed);
}

/// Returns the real parts of a complex tensor, as a view.
at::Tensor real_part(const at::Tensor& tensor) {
  const c10::TensorImpl& from = *tensor.unsafeGetTensorImpl();
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(from.storage()),
      c10::DispatchKeySet(
          on_device(tensor) ? kDenseKey : c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(c10::toRealValueType(tensor.scalar_type())));
  c10::DimVector strides(from.strides());
  for (int64_t& stride : strides) {
    stride *= 2;
  }
  c10::TensorImpl& to = *made.unsafeGetTensorImpl();
  to.set_sizes_and_strides(from.sizes(), strides, 2 * from.storage_offset());
  to._set_neg(from.is_neg());
  return made;
}

/// A copy within a device, between two devices, or between host and device.
class CopyCall final : public Call {
 public:
  CopyCall(at::Tensor& dst, const at::Tensor& src, c10::DeviceIndex device)
      : Call(handle(), info_of(handle()), device, DispatchPath::kTyped),
        dst_(dst),
        src_(src) {
    bytes_if_known = dst.nbytes() + src.nbytes();
    may_be_sent = on_device(dst) && on_device(src) &&
        dst.device() == src.device(); // else it uses memory of two sides
  }

  /// The host kernel accesses pinned memory directly.
  torch::jit::Stack alias_for_later() override {
    return {
        on_device(dst_) ? aliases().alias(dst_, /*written=*/true)
                        : pinned(dst_),
        on_device(src_) ? aliases().alias(src_, /*written=*/false)
                        : pinned(src_),
        false};
  }
  void alias() override {
    to_ = on_device(dst_) ? &aliases().alias(dst_, /*written=*/true) : &dst_;
    from_ = on_device(src_) ? &aliases().alias(src_, /*written=*/false) : &src_;
  }
  void run() override {
    at::native::copy_(*to_, *from_, /*non_blocking=*/false);
  }
  void receive(torch::jit::Stack&& /*dst*/) override {}

 private:
  static const c10::OperatorHandle& handle() {
    static const auto value =
        c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", "");
    return value;
  }

  /// Returns a host tensor for the kernel. A graph keeps its memory alive.
  /// Otherwise record_pinned_use() has done so.
  at::Tensor pinned(const at::Tensor& tensor) const {
    if (!is_captured(device())) {
      return borrow(tensor);
    }
    return at::Tensor(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(
        /*version_counter=*/0, /*allow_tensor_metadata_change=*/false));
  }

  at::Tensor& dst_;
  const at::Tensor& src_;
  at::Tensor* to_ = nullptr;
  const at::Tensor* from_ = nullptr;
};

/// Describes a copy for activity records. Returns nothing if the copy also
/// computes, or if nothing is recorded.
std::optional<LaunchDescription> describe_copy(
    const at::Tensor& dst,
    const at::Tensor& src) {
  if (!records_activity()) {
    return std::nullopt;
  }
  const bool within = on_device(dst) && on_device(src);
  if (within &&
      (dst.dtype() != src.dtype() || dst.strides() != src.strides() ||
       dst.sizes() != src.sizes() || !dst.is_non_overlapping_and_dense())) {
    return std::nullopt;
  }
  orLaunchInfo info = OPENREG_LAUNCH_INFO_INIT;
  info.name = "aten::copy_";
  info.kind = orActivityMemcpy;
  info.bytes = dst.nbytes();
  info.hostMemory = orMemoryTypeDevice;
  info.direction = orMemcpyDeviceToDevice;
  if (!within) {
    info.direction =
        on_device(dst) ? orMemcpyHostToDevice : orMemcpyDeviceToHost;
    info.hostMemory = (on_device(dst) ? src : dst).is_pinned()
        ? orMemoryTypeHost
        : orMemoryTypeUnmanaged;
  }
  return std::optional<LaunchDescription>(std::in_place, info);
}

/// Whether a copy between host and device returns before it is complete. As on
/// CUDA, only copies from or to pinned memory do. Stream order or
/// record_stream() keeps the device memory alive.
bool is_asynchronous(
    const at::Tensor& dst,
    const at::Tensor& src,
    c10::DeviceIndex device) {
  const at::Tensor& host = on_device(dst) ? src : dst;
  return host.is_pinned() &&
      // Wrong shapes and quantizers must raise errors in this call.
      !dst.is_quantized() && !src.is_quantized() &&
      at::is_expandable_to(src.sizes(), dst.sizes()) &&
      // False if the program registered the memory, which it may then free at
      // any time.
      record_pinned_use(host.storage(), current_stream(device));
}

/// Copies between host and device.
void copy_between_host_and_device(
    at::Tensor& dst,
    const at::Tensor& src,
    bool async) {
  at::assert_no_internal_overlap(dst); // in this call, as all errors
  const c10::DeviceIndex device = (on_device(dst) ? dst : src).device().index();
  CopyCall call(dst, src, device);
  call.place = Call::Place::kInTurn;
  const bool returns_early = async && is_asynchronous(dst, src, device);
  if (!kernels_reach_memory()) {
    if (!on_device(dst) && !returns_early) {
      synchronize_current_stream(device); // throws earlier errors
    }
    transfer_with_host(dst, src, returns_early);
    return;
  }
  if (returns_early) {
    call.place = Call::Place::kQueue;
  } else if (!on_device(dst)) {
    // The host will read: throw earlier errors of the stream.
    synchronize_current_stream(device);
  }
  submit(call);
}

/// Copies within a device, or between two. As on CUDA, the current stream of
/// the source copies after the work of the current stream of the destination,
/// whose later work waits for the copy.
void copy_on_devices(at::Tensor& dst, const at::Tensor& src) {
  const c10::DeviceIndex source = src.device().index();
  const c10::DeviceIndex target = dst.device().index();
  const bool can_be_enqueued = !dst.is_quantized() && !src.is_quantized() &&
      at::is_expandable_to(src.sizes(), dst.sizes()) && !overlaps(dst, src);
  if (source != target && !kernels_reach_memory()) {
    transfer_between_devices(dst, src);
    return;
  }
  if (source == target) {
    CopyCall call(dst, src, target);
    call.place = can_be_enqueued ? Call::Place::kAny : Call::Place::kInTurn;
    submit(call);
  } else if (!can_be_enqueued || runs_here(source) || runs_here(target)) {
    synchronize_current_stream(source); // pending work may still write src
    CopyCall call(dst, src, target);
    call.place = Call::Place::kInTurn;
    submit(call);
  } else {
    StreamEvent(current_handle(target)).hold(current_handle(source));
    CopyCall call(dst, src, source);
    call.place = Call::Place::kQueue;
    submit(call);
    StreamEvent(current_handle(source)).hold(current_handle(target));
  }
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
  if (src._is_zerotensor()) {
    return self.zero_();
  }
  check_extent(self, "aten::copy_", "self");
  check_extent(src, "aten::copy_", "src");
  // Raises errors and warnings that follow from metadata in this call. Errors
  // of an enqueued kernel would come too late. The CPU's copy raises the
  // others.
  const bool is_quantized = self.is_quantized() || src.is_quantized();
  if (!is_quantized && self.numel() > 0 && !overlaps(self, src) &&
      at::is_expandable_to(src.sizes(), self.sizes())) {
    if (src.is_complex() && !self.is_complex() && self.dtype() != at::kBool) {
      TORCH_WARN_ONCE(
          "Casting complex values to real discards the imaginary part");
      return copy_tensor(self, real_part(src), non_blocking);
    }
    check_dtypes(self.scalar_type(), src.scalar_type());
  }
  const auto description = describe_copy(self, src);
  // A lazily copied storage gets its own buffer before other code references
  // it.
  self.storage().unsafeGetStorageImpl()->mutable_data();
  if (on_device(self) && on_device(src)) {
    copy_on_devices(self, src);
  } else {
    copy_between_host_and_device(self, src, non_blocking);
  }
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

const c10::OperatorHandle& local_scalar_dense_handle() {
  static const auto value = c10::Dispatcher::singleton().findSchemaOrThrow(
      "aten::_local_scalar_dense", "");
  return value;
}

/// Converts complex numbers of 16-bit floats, too, which at::Scalar refuses.
template <typename T>
at::Scalar number_of(const T& value) {
  if constexpr (std::is_convertible_v<const T&, at::Scalar>) {
    return value;
  } else {
    return c10::complex<float>(value.real(), value.imag());
  }
}

/// Reads one element on the host, after all work of the stream.
at::Scalar local_scalar_dense(const at::Tensor& self) {
  TORCH_CHECK(self.numel() > 0, "Empty tensor not supported");
  check_extent(self, "aten::_local_scalar_dense", "self");
  const c10::DeviceIndex device = self.device().index();
  if (is_captured(device)) {
    reject_capture(local_scalar_dense_handle(), device, /*host_waits=*/true);
  }
  if (counts_paths()) {
    count_path(
        local_scalar_dense_handle().operator_name(), DispatchPath::kTyped);
  }
  synchronize_current_stream(device); // reports an earlier failure
  std::array<std::byte, 16> element;  // of any dtype
  const void* data =
      readable(device, self.const_data_ptr(), self.itemsize(), element.data());
  at::Scalar result;
  AT_DISPATCH_V2(
      self.scalar_type(),
      "_local_scalar_dense",
      AT_WRAP([&] { result = number_of(*static_cast<const scalar_t*>(data)); }),
      AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX),
      AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES),
      AT_EXPAND(AT_FLOAT8_TYPES),
      OPENREG_DTYPES_SINCE_2_14 at::kComplexHalf,
      at::kHalf,
      at::kBool,
      at::kBFloat16);
  return result;
}

} // namespace

OPENREG_MECHANISM(
    copy,
    "TORCH_LIBRARY_IMPL(aten, PrivateUse1): copies",
    "data cannot reach the device or come back: to, cpu, print") {
  static auto library = OPENREG_LIBRARY_IMPL(aten, kDenseKey);
  library.impl("copy_", TORCH_FN(copy_tensor));
  library.impl("_copy_from", TORCH_FN(copy_from));
  library.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  library.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
}

} // namespace openreg::aten
