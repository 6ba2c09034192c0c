// SPDX-License-Identifier: BSD-3-Clause
// Launches of kernels by wrappers in C++. The text becomes a part of each,
// after bound.h and runtime.h.
#pragma once

#include "launch/bound.h"
#include "launch/runtime.h"

#include <torch/csrc/stable/c/shim.h>

#include <stdexcept>

namespace openreg::inductor {

/// Throws what a C function has caught, in its words.
inline void check(AOTITorchError code) {
  if (code != AOTI_TORCH_SUCCESS) {
    throw std::runtime_error(torch_exception_get_what_without_backtrace());
  }
}

/// Makes a device current for a scope.
class DeviceGuard {
 public:
  explicit DeviceGuard(int32_t index) {
    check(openreg_inductor_exchange_device(index, &previous_));
  }
  /// The runner has made sure that the stream is the current one.
  DeviceGuard(void* /*stream*/, int32_t index) : DeviceGuard(index) {}
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard() {
    set_index(previous_); // it was current, so it is a device
  }
  void set_index(int32_t index) {
    int32_t unused = 0;
    check(openreg_inductor_exchange_device(index, &unused));
  }

 private:
  int32_t previous_ = 0;
};

/// Makes the kernel's argument of type T from a tensor or number.
template <typename T, typename Value>
auto convert(
    const Value& value,
    int64_t device,
    const char* kernel,
    Facts& facts) {
  if constexpr (std::is_pointer_v<T>) {
    Operand operand = unbound<T>();
    check(openreg_inductor_find_operand(
        value.get(), device, kernel, facts.tensors + 1, &operand));
    return bind<T>(operand, facts);
  } else {
    return static_cast<T>(value);
  }
}

template <auto Kernel>
struct Launch;

template <typename... Params, void (*Kernel)(Params...)>
struct Launch<Kernel> {
  template <typename... Values>
  static void run(
      const char* name,
      bool may_raise,
      int64_t device,
      const Values&... values) {
    static const char* const kept = openreg_inductor_keep_name(name);
    Facts facts;
    using Each = Bound<
        Kernel,
        decltype(convert<Params>(values, device, kept, facts))...>;
    Each bound{{convert<Params>(values, device, kept, facts)...}};
    const Call call = bound.describe(kept, may_raise, device, facts);
    check(openreg_inductor_launch(&call));
  }
};

} // namespace openreg::inductor

// PyTorch's says which function failed, and not why.
#undef AOTI_TORCH_ERROR_CODE_CHECK
#define AOTI_TORCH_ERROR_CODE_CHECK(call) openreg::inductor::check(call)
