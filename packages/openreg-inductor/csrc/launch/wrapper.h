// SPDX-License-Identifier: BSD-3-Clause
// Kernel launches of C++ wrappers. This text is copied into each wrapper, after
// bound.h and runtime.h.
#pragma once

#include "launch/bound.h"
#include "launch/runtime.h"

#include <torch/csrc/stable/c/shim.h>

#include <stdexcept>

namespace openreg::inductor {

/// Throws the error that a C function has caught, with its text.
inline void check(AOTITorchError code) {
  if (code != AOTI_TORCH_SUCCESS) {
    throw std::runtime_error(torch_exception_get_what_without_backtrace());
  }
}

/// Makes a device current during a scope.
class DeviceGuard {
 public:
  explicit DeviceGuard(int32_t index) {
    check(openreg_inductor_exchange_device(index, &previous_));
  }
  /// The runner has checked that the stream is the current one.
  DeviceGuard(void* /*stream*/, int32_t index) : DeviceGuard(index) {}
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard() {
    set_index(previous_); // cannot fail: the device exists
  }
  void set_index(int32_t index) {
    int32_t unused = 0;
    check(openreg_inductor_exchange_device(index, &unused));
  }

 private:
  int32_t previous_ = 0;
};

/// Converts a tensor or number to a kernel argument of type T.
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

// PyTorch's macro reports the function that failed, but not the reason.
#undef AOTI_TORCH_ERROR_CODE_CHECK
#define AOTI_TORCH_ERROR_CODE_CHECK(call) openreg::inductor::check(call)
