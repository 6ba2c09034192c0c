// SPDX-License-Identifier: BSD-3-Clause
// A kernel with its arguments, ready to run now or later. This text follows
// launch.h and precedes the launch code.
#pragma once

#include "launch/launch.h"

#include <tuple>
#include <type_traits>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace openreg::inductor {

/// Facts about the arguments of one call.
struct Facts {
  size_t tensors = 0;   // the number of tensors
  size_t bytes = 0;     // of all tensors
  bool on_host = false; // the kernel reads or writes host memory
};

/// A tensor that the kernel only reads. A single element in host memory, such
/// as torch.tensor(0.5), is copied immediately, so that the caller need not
/// wait for the kernel.
template <typename T>
struct Input {
  const T* data;
  T number{};
  bool is_number = false;

  operator const T*() const {
    return is_number ? &number : data;
  }
};

/// The facts about an argument of pointer type T before its tensor is known.
template <typename T>
constexpr Operand unbound() {
  return {nullptr, 0, false, !std::is_const_v<std::remove_pointer_t<T>>};
}

/// Converts a tensor to a kernel argument of the pointer type T.
template <typename T>
auto bind(const Operand& operand, Facts& facts) {
  facts.tensors += 1;
  facts.bytes += operand.bytes;
  using Element = std::remove_pointer_t<T>;
  auto* data = static_cast<T>(operand.data);
  if constexpr (std::is_const_v<Element>) {
    Input<std::remove_const_t<Element>> input{data};
    if (operand.on_host && operand.bytes == sizeof(Element)) {
      input.number = *data;
      input.is_number = true;
    } else {
      facts.on_host |= operand.on_host;
    }
    return input;
  } else {
    facts.on_host |= operand.on_host;
    return data;
  }
}

/// Sets the caller's number of OpenMP threads on the thread that runs the
/// kernel, because reductions have as many parts.
class Threads {
 public:
#if defined(_OPENMP)
  explicit Threads(int count) : previous_(omp_get_max_threads()) {
    set(count);
  }
  ~Threads() {
    set(previous_);
  }
  static int count() {
    return omp_get_max_threads();
  }
#else
  explicit Threads(int /*count*/) {}
  static int count() {
    return 1;
  }
#endif
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
#if defined(_OPENMP)
  static void set(int count) {
    if (count != omp_get_max_threads()) {
      omp_set_num_threads(count);
    }
  }
  int previous_;
#endif
};

/// The kernel's arguments, at addresses for kernels.
template <auto Kernel, typename... Args>
struct Bound {
  std::tuple<Args...> args;
  int threads = Threads::count();

  /// Describes the call; it refers to this object.
  Call describe(
      const char* name,
      bool may_raise,
      int64_t device,
      const Facts& facts) {
    Call call;
    call.device = device;
    call.name = name;
    call.bytes = facts.bytes;
    call.may_raise = may_raise;
    call.must_run = facts.on_host;
    call.run = &run;
    call.args = this;
    call.copy = &copy;
    call.destroy = &destroy;
    return call;
  }

  static void run(void* self) {
    const auto& bound = *static_cast<const Bound*>(self);
    const Threads scope(bound.threads);
    std::apply(Kernel, bound.args);
  }
  static void* copy(const void* self) {
    return new Bound(*static_cast<const Bound*>(self));
  }
  static void destroy(void* self) noexcept {
    delete static_cast<Bound*>(self);
  }
};

} // namespace openreg::inductor
