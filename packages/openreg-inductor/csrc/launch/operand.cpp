// SPDX-License-Identifier: BSD-3-Clause
// Functions for wrappers: kernel arguments, launches and devices.
#include "launch/operand.h"

#include "launch/raised.h"
#include "launch/runtime.h"

#include <openreg/openreg.h>

#include <ATen/EmptyTensor.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/inductor/aoti_torch/utils.h>

#include <atomic>
#include <device_type.h>
#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace openreg::inductor {
namespace {

/// The range of device pointers, and the distance to kernel pointers.
struct AddressRange {
  const std::byte* begin;
  const std::byte* end;
  ptrdiff_t distance;
};

AddressRange load_range() {
  void* begin = nullptr;
  void* end = nullptr;
  ptrdiff_t distance = 0;
  TORCH_CHECK(
      orGetAddressRange(&begin, &end, &distance) == orSuccess,
      orGetErrorMessage());
  return {
      static_cast<const std::byte*>(begin),
      static_cast<const std::byte*>(end),
      distance};
}

/// Throws if the storage is smaller than the tensor needs after a resize.
void check_extent(const at::Tensor& tensor, const char* kernel, size_t number) {
  const size_t nbytes = tensor.storage().nbytes();
  const size_t end =
      tensor.nbytes() + tensor.storage_offset() * tensor.itemsize();
  if (C10_LIKELY(end <= nbytes && tensor.is_non_overlapping_and_dense())) {
    return;
  }
  const size_t needed = at::detail::computeStorageNbytes(
      tensor.sizes(),
      tensor.strides(),
      tensor.itemsize(),
      static_cast<size_t>(tensor.storage_offset()));
  if (needed > nbytes && tensor.numel() > 0) {
    throw c10::AcceleratorError(
        {__func__, __FILE__, __LINE__},
        orErrorIllegalAddress,
        c10::str(
            "OpenReg error: ",
            orGetErrorString(orErrorIllegalAddress),
            " (",
            orGetErrorName(orErrorIllegalAddress),
            "): the compiled kernel ",
            kernel,
            ": tensor ",
            number,
            " of its arguments, with shape ",
            tensor.sizes(),
            " and dtype ",
            tensor.scalar_type(),
            ", needs ",
            needed,
            " bytes of its storage, which has ",
            nbytes,
            ". Resize the storage before the call, with "
            "tensor.untyped_storage().resize_(",
            needed,
            ")"));
  }
}

/// Throws if a kernel cannot use the tensor.
void look_at(
    const at::Tensor& tensor,
    int64_t device,
    const char* kernel,
    size_t number,
    Operand& operand) {
  check_extent(tensor, kernel, number);
  static const AddressRange range = load_range();
  auto* address = static_cast<std::byte*>(tensor.data_ptr());
  operand.data = address;
  operand.bytes = tensor.nbytes();
  operand.on_host = address != nullptr;
  if (address < range.begin || address >= range.end) {
    return;
  }
  TORCH_CHECK(
      tensor.device().index() == device,
      "a compiled kernel of device ",
      device,
      " got a tensor of ",
      tensor.device());
  operand.data = address + range.distance;
  operand.on_host = false;
}

std::atomic<LaunchCompiled> launch_compiled{nullptr};

std::atomic<Observe> observe_launch{nullptr};
thread_local std::vector<Observed> observed; // of the next launch

thread_local RaisedScope* raised_scope = nullptr; // the innermost

} // namespace

void find_operand(
    const at::Tensor& tensor,
    int64_t device,
    const char* kernel,
    size_t number,
    Operand& operand) {
  if (number == 1) {
    observed.clear(); // of a kernel that was refused
  }
  look_at(tensor, device, kernel, number, operand);
  if (C10_UNLIKELY(observe_launch.load() != nullptr)) {
    observed.push_back({tensor, operand.writes});
  }
}

void set_observe(Observe observe) {
  observe_launch = observe;
}

void set_launch(LaunchCompiled launch) {
  launch_compiled = launch;
}

void launch(const Call& call) {
  const LaunchCompiled found = launch_compiled;
  TORCH_CHECK(
      found != nullptr,
      "a compiled kernel needs openreg_aten._C, which is not loaded: import "
      "torch_openreg first");
  if (const Observe observe = observe_launch) {
    const auto operands = std::exchange(observed, {});
    observe(call, operands);
  }
  found(call);
}

RaisedScope::RaisedScope() noexcept
    : outer_(std::exchange(raised_scope, this)) {}

RaisedScope::~RaisedScope() {
  raised_scope = outer_;
}

void RaisedScope::keep() noexcept {
  if (raised_scope != nullptr) {
    raised_scope->raised_ = std::current_exception();
  }
}

} // namespace openreg::inductor

AOTITorchError openreg_inductor_find_operand(
    AtenTensorHandle tensor,
    int64_t device,
    const char* kernel,
    size_t number,
    openreg::inductor::Operand* operand) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({
    openreg::inductor::find_operand(
        *torch::aot_inductor::tensor_handle_to_tensor_pointer(tensor),
        device,
        kernel,
        number,
        *operand);
  });
}

AOTITorchError openreg_inductor_launch(const openreg::inductor::Call* call) {
  OPENREG_CONVERT_EXCEPTION_TO_ERROR_CODE(
      { openreg::inductor::launch(*call); });
}

AOTITorchError openreg_inductor_exchange_device(
    int32_t device,
    int32_t* previous) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({
    const c10::Device next(
        openreg::device_type(), static_cast<c10::DeviceIndex>(device));
    *previous = c10::impl::getDeviceGuardImpl(next.type())
                    ->exchangeDevice(next)
                    .index();
  });
}

const char* openreg_inductor_keep_name(const char* name) {
  static std::mutex mutex;
  static std::unordered_set<std::string> names;
  const std::lock_guard lock(mutex);
  return names.emplace(name).first->c_str();
}
