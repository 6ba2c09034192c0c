// SPDX-License-Identifier: BSD-3-Clause
// Launches any C++ callable on a stream, over the C call of openreg.h.
#ifndef OPENREG_OPENREG_HPP
#define OPENREG_OPENREG_HPP

#ifndef OPENREG_OPENREG_H
#error "include <openreg/openreg.h>, which includes this file"
#endif
#if __cplusplus < 201703L
#error "openreg.hpp needs C++17: std::apply and std::is_invocable"
#endif

#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

/// Enqueues `kernel(args...)` on `stream`; callable and arguments are moved or
/// copied, and destroyed after the kernel has run.
template <
    typename Kernel,
    typename... Args,
    typename = std::enable_if_t<
        std::is_invocable_v<std::decay_t<Kernel>&, std::decay_t<Args>...>>>
[[nodiscard]] orError_t
orLaunchKernel(orStream_t stream, Kernel&& kernel, Args&&... args) {
  auto bound = [fn = std::forward<Kernel>(kernel),
                arguments =
                    std::make_tuple(std::forward<Args>(args)...)]() mutable {
    std::apply(fn, std::move(arguments));
  };
  using Bound = decltype(bound);
  auto owned = std::make_unique<Bound>(std::move(bound));
  const orError_t error = orLaunchKernel(
      stream,
      static_cast<orKernel_t>([](void* p) { (*static_cast<Bound*>(p))(); }),
      static_cast<void*>(owned.get()),
      static_cast<orKernel_t>([](void* p) { delete static_cast<Bound*>(p); }));
  if (error == orSuccess) {
    static_cast<void>(owned.release());
  }
  return error;
}

#endif // OPENREG_OPENREG_HPP
