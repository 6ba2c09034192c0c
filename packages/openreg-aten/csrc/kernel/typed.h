// SPDX-License-Identifier: BSD-3-Clause
// The boxed kernel's work in an operator's own C++ signature.
//
// A boxed kernel takes its arguments from a stack. Putting them there costs a
// reference to each tensor, and a tensor's first reference besides that of its
// Python object takes the GIL. A typed kernel gets references to the caller's
// arguments, and passes references to CPU aliases on.
#pragma once

#include "device/generator.h"
#include "kernel/cpu_aliases.h"
#include "kernel/device_finder.h"
#include "kernel/dispatch_paths.h"
#include "kernel/enqueue.h"
#include "kernel/kernel.h"
#include "kernel/operator_info.h"
#include "kernel/output_metadata.h"
#include "kernel/wider.h"

#include <ATen/Context.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace openreg::aten {

/// Replaces the arguments of one call by what the CPU's kernel gets for them,
/// in the order of the schema.
class TypedArguments {
 public:
  TypedArguments(const OperatorInfo& info, c10::DeviceIndex device)
      : next_(info.arguments.data()), device_(device), aliases_(device) {}

  at::Tensor& operator()(const at::Tensor& tensor) {
    return aliases_.alias_argument(tensor, *next_++);
  }
  std::optional<at::Tensor> operator()(
      const std::optional<at::Tensor>& tensor) {
    const auto& argument = *next_++;
    return tensor ? std::optional(aliases_.alias_argument(*tensor, argument))
                  : std::nullopt;
  }
  std::vector<at::Tensor> operator()(at::TensorList tensors) {
    return alias_each(tensors);
  }
  std::vector<at::Tensor> operator()(const at::ITensorListRef& tensors) {
    return alias_each(tensors);
  }
  c10::List<std::optional<at::Tensor>> operator()(
      const c10::List<std::optional<at::Tensor>>& tensors) {
    const auto& argument = *next_++;
    c10::List<std::optional<at::Tensor>> aliases;
    for (const std::optional<at::Tensor> tensor : tensors) {
      aliases.push_back(
          tensor ? std::optional(aliases_.alias_argument(*tensor, argument))
                 : std::nullopt);
    }
    return aliases;
  }
  std::optional<at::Generator> operator()(
      const std::optional<at::Generator>& generator) {
    ++next_;
    return prepare_cpu_generator(device_, generator);
  }
  /// Numbers, sizes and the like go to the kernel as they are.
  template <typename Plain>
  const Plain& operator()(const Plain& value) {
    return value;
  }

  CpuAliases& aliases() {
    return aliases_;
  }

 private:
  template <typename Tensors>
  std::vector<at::Tensor> alias_each(const Tensors& tensors) {
    const auto& argument = *next_++;
    std::vector<at::Tensor> aliases;
    aliases.reserve(tensors.size());
    for (const at::Tensor& tensor : tensors) {
      aliases.push_back(aliases_.alias_argument(tensor, argument));
    }
    return aliases;
  }

  const OperatorInfo::Argument* next_;
  c10::DeviceIndex device_;
  CpuAliases aliases_;
};

/// What TypedArguments does to an argument, as types.
template <typename Argument>
using CpuArgument =
    decltype(std::declval<TypedArguments&>()(std::declval<Argument>()));
template <typename Argument>
inline constexpr bool kIsReplaced =
    !std::is_same_v<CpuArgument<Argument>, const std::decay_t<Argument>&>;

/// An argument as it is put on a stack.
template <typename Argument>
const Argument& as_value(const Argument& argument) {
  return argument;
}
template <typename Tensors>
std::vector<at::Tensor> to_vector(const Tensors& tensors) {
  return std::vector<at::Tensor>(tensors.begin(), tensors.end());
}
inline std::vector<at::Tensor> as_value(const at::TensorList& tensors) {
  return to_vector(tensors);
}
inline std::vector<at::Tensor> as_value(const at::ITensorListRef& tensors) {
  return to_vector(tensors);
}

/// Lets a visitor see the tensors of an argument.
template <typename Visitor, typename Argument>
void see_tensors(Visitor& visitor, const Argument& argument) {
  using Type = std::decay_t<Argument>;
  if constexpr (std::is_same_v<Type, at::Tensor>) {
    visitor.see(argument);
  } else if constexpr (std::is_same_v<Type, std::optional<at::Tensor>>) {
    if (argument) {
      visitor.see(*argument);
    }
  } else if constexpr (
      std::is_same_v<Type, at::TensorList> ||
      std::is_same_v<Type, at::ITensorListRef>) {
    for (const at::Tensor& tensor : argument) {
      visitor.see(tensor);
    }
  } else if constexpr (
      std::is_same_v<Type, c10::List<std::optional<at::Tensor>>>) {
    for (const std::optional<at::Tensor> tensor : argument) {
      if (tensor) {
        visitor.see(*tensor);
      }
    }
  }
}

/// Raises the versions of tensors, as in-place operators on them do.
struct VersionRaiser {
  void see(const at::Tensor& tensor) const {
    tensor.unsafeGetTensorImpl()->bump_version();
  }
};

/// Makes the results of a kernel the device's.
inline at::Tensor adopt(CpuAliases& aliases, at::Tensor&& result) {
  return aliases.adopt(std::move(result));
}
inline std::vector<at::Tensor> adopt(
    CpuAliases& aliases,
    std::vector<at::Tensor>&& results) {
  for (at::Tensor& result : results) {
    result = aliases.adopt(std::move(result));
  }
  return std::move(results);
}
template <typename... Results>
std::tuple<Results...> adopt(
    CpuAliases& aliases,
    std::tuple<Results...>&& results) {
  return std::apply(
      [&](auto&&... each) {
        return std::tuple<Results...>{adopt(aliases, std::move(each))...};
      },
      std::move(results));
}
template <typename Plain>
Plain adopt(CpuAliases&, Plain&& result) {
  return std::forward<Plain>(result);
}

/// Puts the draw of a random operator behind earlier ones. First of all, since
/// the stream may have to wait for them.
template <typename Argument>
void order_draw(const DeviceFinder&, const Argument&) {}
inline void order_draw(
    const DeviceFinder& finder,
    const std::optional<at::Generator>& generator) {
  finder.check_generator();
  prepare_cpu_generator(finder.result(), generator);
}

/// Results as a list of tensors, and back.
inline std::vector<at::Tensor> to_tensors(const at::Tensor& result) {
  return {result};
}
inline std::vector<at::Tensor> to_tensors(
    const std::vector<at::Tensor>& results) {
  return results;
}
template <typename... Results>
std::vector<at::Tensor> to_tensors(const std::tuple<Results...>& results) {
  return std::apply(
      [](const Results&... each) { return std::vector<at::Tensor>{each...}; },
      results);
}
/// Gives written tensors the sizes that their operator would give them.
template <typename... Tensors>
void resize_written(
    const std::vector<c10::DimVector>& sizes,
    const std::tuple<Tensors&...>& written) {
  size_t next = 0;
  std::apply(
      [&](const Tensors&... each) {
        (resize_result(each, sizes[next++]), ...);
      },
      written);
}
template <typename Result>
Result from_tensors(std::vector<at::Tensor>& results) {
  if constexpr (std::is_same_v<Result, at::Tensor>) {
    return std::move(results[0]);
  } else if constexpr (std::is_same_v<Result, std::vector<at::Tensor>>) {
    return std::move(results);
  } else {
    Result tuple;
    size_t next = 0;
    std::apply(
        [&](auto&... each) { ((each = std::move(results[next++])), ...); },
        tuple);
    return tuple;
  }
}

/// References to the tensors that an operator writes to and returns, in order;
/// moves no argument.
template <typename... Args>
auto tie_written(Args&&... args) {
  const auto pick = [](auto&& arg) {
    if constexpr (std::is_same_v<decltype(arg), at::Tensor&>) {
      return std::tie(arg);
    } else {
      return std::tuple<>();
    }
  };
  return std::tuple_cat(pick(std::forward<Args>(args))...);
}
/// The results that are arguments.
template <typename Result, typename... Args>
Result written_arguments(Args&&... args) {
  auto written = tie_written(std::forward<Args>(args)...);
  if constexpr (std::is_reference_v<Result>) {
    return std::get<0>(written);
  } else {
    return written;
  }
}

template <typename Result>
inline constexpr bool kIsArgument = std::is_reference_v<Result>;
template <typename... Results>
inline constexpr bool kIsArgument<std::tuple<Results...>> =
    (std::is_reference_v<Results> && ...);

/// Counts a call of one of at::_ops, if anybody counts.
template <typename Operator>
void count_call(DispatchPath path) {
  if (counts_paths()) {
    count_path({Operator::name, Operator::overload_name}, path);
  }
}

template <typename Operator, typename Schema = typename Operator::schema>
struct TypedKernel;

/// The kernel of `Operator`, one of at::_ops: its CPU kernel on device memory.
template <typename Operator, typename Result, typename... Args>
struct TypedKernel<Operator, Result(Args...)> {
  static const c10::OperatorHandle& handle() {
    static const auto value = c10::Dispatcher::singleton().findSchemaOrThrow(
        Operator::name, Operator::overload_name);
    return value;
  }
  static const OperatorInfo& info() {
    static const OperatorInfo& value = info_of(handle());
    return value;
  }

  // [docs: typed-run]
  static Result run(Args... args) {
    if (C10_UNLIKELY(computes_in_refused(info(), args...))) {
      return WiderCall<Operator>::run(handle(), static_cast<Args&&>(args)...);
    }
    DeviceFinder finder;
    (see_tensors(finder, args), ...);
    const c10::DeviceIndex device = finder.result();
    (order_draw(finder, args), ...);
    CallKey key(handle(), info());
    (key.add(args), ...);
    const auto outputs =
        output_metadata_if_enqueued(handle(), info(), key, device, [&] {
          torch::jit::Stack stack;
          (torch::jit::push(stack, as_value(args)), ...);
          return stack;
        });
    if (outputs) {
      if constexpr (kIsArgument<Result>) {
        if (!outputs->resized.empty()) {
          resize_written(
              outputs->resized, tie_written(static_cast<Args&&>(args)...));
        }
      }
      auto results = make_results(device, outputs->made);
      enqueue_into(device, results, digest_of(key), args...);
      raise_versions(args...);
      if constexpr (kIsArgument<Result>) {
        return written_arguments<Result>(static_cast<Args&&>(args)...);
      } else if constexpr (!std::is_void_v<Result>) {
        return from_tensors<Result>(results);
      } else {
        return;
      }
    }
    TypedArguments to_cpu(info(), device);
    std::tuple<CpuArgument<Args>...> cpu_args{to_cpu(args)...};
    count_call<Operator>(DispatchPath::kTyped);
    const auto run_on_cpu = [&]() -> Result {
      const KernelScope scope(device);
      return std::apply(
          [](auto&... each) -> Result {
            return Operator::redispatch(
                c10::DispatchKeySet(c10::DispatchKey::CPU), each...);
          },
          cpu_args);
    };
    if constexpr (kIsArgument<Result> || std::is_void_v<Result>) {
      run_on_current_stream(device, [&] { run_on_cpu(); });
      raise_versions(args...);
      const bool changed = to_cpu.aliases().write_back();
      if (key.usable() && !to_cpu.aliases().has_changed_bits() &&
          !was_seen(key)) {
        if (!changed) {
          cache_call(key, {}, {});
        } else if constexpr (kIsArgument<Result>) {
          cache_call(
              key, {}, to_tensors(tie_written(static_cast<Args&&>(args)...)));
        }
      }
      if constexpr (kIsArgument<Result>) {
        return written_arguments<Result>(static_cast<Args&&>(args)...);
      }
    } else {
      std::optional<Result> made;
      run_on_current_stream(device, [&] { made.emplace(run_on_cpu()); });
      to_cpu.aliases().write_back();
      Result result = adopt(to_cpu.aliases(), std::move(*made));
      if (key.usable() && !was_seen(key)) {
        cache_call(key, to_tensors(result), {});
      }
      return result;
    }
  }
  // [docs: end]

  /// Enqueues the CPU's kernel, with new tensors in the memory of `results`.
  static void enqueue_into(
      c10::DeviceIndex device,
      const std::vector<at::Tensor>& results,
      uint64_t digest,
      Args... args) {
    count_call<Operator>(DispatchPath::kEnqueued);
    TypedArguments to_cpu(info(), device);
    torch::jit::Stack stack;
    stack.reserve(sizeof...(Args));
    (torch::jit::push(stack, to_cpu(args)), ...);
    enqueue(
        handle(), device, to_cpu.aliases(), std::move(stack), results, digest);
  }

  /// Raises the versions of what was written, where ADInplaceOrView does not.
  static void raise_versions(const Args&... args) {
    if constexpr (std::is_void_v<Result>) {
      if (info().raises_versions) {
        const VersionRaiser raiser;
        const auto* next = info().arguments.data();
        (raise_versions(raiser, next, args), ...);
      }
    }
  }
  template <typename Argument>
  static void raise_versions(
      const VersionRaiser& raiser,
      const OperatorInfo::Argument*& next,
      const Argument& argument) {
    if constexpr (kIsReplaced<Argument>) {
      if ((next++)->written) {
        see_tensors(raiser, argument);
      }
    }
  }

  /// Whether every argument that the OperatorInfo names is replaced.
  static bool is_complete() {
    return (size_t{kIsReplaced<Args>} + ... + 0) == info().arguments.size();
  }
};

} // namespace openreg::aten
