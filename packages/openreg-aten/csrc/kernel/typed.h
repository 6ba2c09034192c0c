// SPDX-License-Identifier: BSD-3-Clause
// Typed kernels: the work of the boxed kernel in the C++ signature of an
// operator.
//
// A boxed kernel takes its arguments from a stack. Pushing them costs a
// reference to each tensor, and the first reference after that of the Python
// object takes the GIL. A typed kernel gets references to the arguments of the
// caller, and passes references to CPU aliases on.
#pragma once

#include "alias/cpu_aliases.h"
#include "alias/device_finder.h"
#include "call/call.h"
#include "call/submit.h"
#include "facts/operator_info.h"
#include "kernel/boxed.h"
#include "kernel/wider.h"
#include "random/generator.h"

#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace openreg::aten {

/// Replaces the arguments of one call for the CPU kernel, in schema order.
class TypedArguments {
 public:
  TypedArguments(
      const OperatorInfo& info,
      c10::DeviceIndex device,
      CpuAliases& aliases)
      : next_(info.arguments.data()), device_(device), aliases_(aliases) {}

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
  /// Numbers, sizes and the like are passed unchanged.
  template <typename Plain>
  const Plain& operator()(const Plain& value) {
    return value;
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
  CpuAliases& aliases_;
};

/// The argument type that TypedArguments passes to the kernel.
template <typename Argument>
using CpuArgument =
    decltype(std::declval<TypedArguments&>()(std::declval<Argument>()));
template <typename Argument>
inline constexpr bool kIsReplaced =
    !std::is_same_v<CpuArgument<Argument>, const std::decay_t<Argument>&>;

/// Converts an argument to an IValue.
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

/// Calls a visitor with each tensor in an argument.
template <typename Visitor, typename Argument>
void visit_tensors(Visitor& visitor, const Argument& argument) {
  using Type = std::decay_t<Argument>;
  if constexpr (std::is_same_v<Type, at::Tensor>) {
    visitor.visit(argument);
  } else if constexpr (std::is_same_v<Type, std::optional<at::Tensor>>) {
    if (argument) {
      visitor.visit(*argument);
    }
  } else if constexpr (
      std::is_same_v<Type, at::TensorList> ||
      std::is_same_v<Type, at::ITensorListRef>) {
    for (const at::Tensor& tensor : argument) {
      visitor.visit(tensor);
    }
  } else if constexpr (
      std::is_same_v<Type, c10::List<std::optional<at::Tensor>>>) {
    for (const std::optional<at::Tensor> tensor : argument) {
      if (tensor) {
        visitor.visit(*tensor);
      }
    }
  }
}

/// Increments the versions of tensors, as in-place operators do.
struct VersionIncrementer {
  void visit(const at::Tensor& tensor) const {
    tensor.unsafeGetTensorImpl()->bump_version();
  }
};

/// Converts kernel results to device tensors.
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

/// Orders the draw of a random operator after earlier draws. This comes first,
/// because the stream may have to wait for them.
template <typename Argument>
void order_draw(const DeviceFinder&, const Argument&) {}
inline void order_draw(
    const DeviceFinder& finder,
    const std::optional<at::Generator>& generator) {
  finder.check_generator();
  prepare_cpu_generator(finder.result(), generator);
}

/// Convert results to a list of tensors, and back.
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

/// Returns references to the tensors that an operator writes to and returns, in
/// order. Does not move arguments.
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
/// Returns the results that are arguments.
template <typename Result, typename... Args>
Result written_arguments(Args&&... args) {
  auto written = tie_written(std::forward<Args>(args)...);
  if constexpr (std::is_reference_v<Result>) {
    return std::get<0>(written);
  } else {
    return written;
  }
}

/// Converts the results of a boxed kernel to the result type of a typed kernel.
template <typename Result>
struct FromStack {
  static Result make(torch::jit::Stack&& stack) {
    return std::move(stack[0]).to<Result>();
  }
};
template <typename... Results>
struct FromStack<std::tuple<Results...>> {
  static std::tuple<Results...> make(torch::jit::Stack&& stack) {
    return make(stack, std::index_sequence_for<Results...>());
  }

 private:
  template <size_t... indices>
  static std::tuple<Results...> make(
      torch::jit::Stack& stack,
      std::index_sequence<indices...>) {
    return {std::move(stack[indices]).template to<Results>()...};
  }
};

template <typename Result>
inline constexpr bool kIsArgument = std::is_reference_v<Result>;
template <typename... Results>
inline constexpr bool kIsArgument<std::tuple<Results...>> =
    (std::is_reference_v<Results> && ...);

/// A call of `Operator`, an operator of at::_ops, with references to its
/// arguments.
template <typename Operator, typename Schema = typename Operator::schema>
class TypedCall;
template <typename Operator, typename Result, typename... Args>
class TypedCall<Operator, Result(Args...)> : public Call {
 public:
  explicit TypedCall(
      c10::DeviceIndex device,
      const std::decay_t<Args>&... args,
      DispatchPath path = DispatchPath::kTyped)
      : Call(handle(), schema_info(), device, path), args_(args...) {}

  static const c10::OperatorHandle& handle() {
    static const auto value = c10::Dispatcher::singleton().findSchemaOrThrow(
        Operator::name, Operator::overload_name);
    return value;
  }
  static const OperatorInfo& schema_info() {
    static const OperatorInfo& value = info_of(handle());
    return value;
  }

  void add_to(CallKey& key) const override {
    std::apply([&](const auto&... arg) { (key.add(arg), ...); }, args_);
  }
  torch::jit::Stack arguments() const override {
    torch::jit::Stack stack;
    std::apply(
        [&](const auto&... arg) {
          (torch::jit::push(stack, as_value(arg)), ...);
        },
        args_);
    return stack;
  }

  torch::jit::Stack alias_for_later() override {
    TypedArguments to_cpu(this->info(), this->device(), this->aliases());
    torch::jit::Stack stack;
    stack.reserve(sizeof...(Args));
    std::apply(
        [&](const auto&... arg) {
          (torch::jit::push(stack, to_cpu(arg)), ...);
        },
        args_);
    return stack;
  }
  void take(std::vector<at::Tensor>&& made) override {
    if constexpr (kMakesTensors) {
      made_.emplace(from_tensors<Result>(made));
    }
  }

  // [docs: typed-run]
  void alias() override {
    TypedArguments to_cpu(this->info(), this->device(), this->aliases());
    std::apply(
        [&](const auto&... arg) {
          cpu_args_.emplace(CpuArguments{to_cpu(arg)...});
        },
        args_);
  }
  void run() override {
    std::apply(
        [&](auto&... arg) {
          constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::CPU);
          if constexpr (kMakesTensors) {
            made_.emplace(Operator::redispatch(kKeys, arg...));
          } else {
            Operator::redispatch(kKeys, arg...);
          }
        },
        *cpu_args_);
  }
  void receive(torch::jit::Stack&& results) override {
    if constexpr (kMakesTensors) {
      made_.emplace(FromStack<Result>::make(std::move(results)));
    }
  }
  void adopt() override {
    cpu_args_.reset(); // or their references would keep aliases out of the pool
    if constexpr (kMakesTensors) {
      *made_ = openreg::aten::adopt(this->aliases(), std::move(*made_));
    }
  }
  // [docs: end]
  std::vector<at::Tensor> made() const override {
    if constexpr (kMakesTensors) {
      return to_tensors(*made_);
    } else {
      return {};
    }
  }
  std::vector<at::Tensor> written() const override {
    std::vector<at::Tensor> tensors;
    std::apply(
        [&](const auto&... arg) { (add_written<Args>(tensors, arg), ...); },
        args_);
    return tensors;
  }

  /// Returns the result of an operator that creates tensors.
  Result take_result() {
    return std::move(*made_);
  }

 protected:
  static constexpr bool kMakesTensors =
      !std::is_void_v<Result> && !kIsArgument<Result>;
  template <typename Work>
  void with_arguments(Work&& work) {
    std::apply(std::forward<Work>(work), args_);
  }
  // Empty if the operator creates no tensors.
  std::optional<std::conditional_t<kMakesTensors, Result, std::monostate>>
      made_;

 private:
  using CpuArguments = std::tuple<CpuArgument<Args>...>;
  template <typename Argument>
  static void add_written(
      std::vector<at::Tensor>& tensors,
      const std::decay_t<Argument>& arg) {
    if constexpr (
        kIsArgument<Result> && std::is_same_v<Argument, at::Tensor&>) {
      tensors.push_back(arg);
    }
  }

  std::tuple<const std::decay_t<Args>&...> args_;
  std::optional<CpuArguments> cpu_args_;
};

template <typename Operator, typename Schema = typename Operator::schema>
struct TypedKernel;

/// The kernel of `Operator`, an operator of at::_ops: runs its CPU kernel on
/// device memory.
template <typename Operator, typename Result, typename... Args>
struct TypedKernel<Operator, Result(Args...)> {
  using OperatorCall = TypedCall<Operator>;

  static Result run(Args... args) {
    const OperatorInfo& info = OperatorCall::schema_info();
    if (C10_UNLIKELY(computes_wider(info, args...))) {
      return WiderCall<Operator>::run(
          OperatorCall::handle(), static_cast<Args&&>(args)...);
    }
    DeviceFinder finder;
    (visit_tensors(finder, args), ...);
    (order_draw(finder, args), ...);
    OperatorCall call(finder.result(), args...);
    submit(call);
    if constexpr (kIsArgument<Result>) {
      return written_arguments<Result>(static_cast<Args&&>(args)...);
    } else if constexpr (std::is_void_v<Result>) {
      if (info.increments_versions) { // if ADInplaceOrView does not
        const auto* next = info.arguments.data();
        (increment_versions(next, args), ...);
      }
    } else {
      return call.take_result();
    }
  }

  template <typename Argument>
  static void increment_versions(
      const OperatorInfo::Argument*& next,
      const Argument& argument) {
    if constexpr (kIsReplaced<Argument>) {
      if ((next++)->written) {
        const VersionIncrementer incrementer;
        visit_tensors(incrementer, argument);
      }
    }
  }

  /// Whether each argument in the OperatorInfo is replaced.
  static bool is_complete() {
    return (size_t{kIsReplaced<Args>} + ... + 0) ==
        OperatorCall::schema_info().arguments.size();
  }
};

} // namespace openreg::aten
