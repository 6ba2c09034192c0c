// SPDX-License-Identifier: BSD-3-Clause
// Rejects the calls that CUDA rejects, with kernels over the registered
// kernels.
//
// A limited operator gets a boxed kernel that checks its rows of the table and
// then calls the previous kernel. Without the setting, nothing is registered.
#include "ops/cuda_limits.h"

#include "alias/device_finder.h"
#include "base/keys.h"
#include "call/device_asserts.h"
#include "call/enqueue.h"
#include "device/device.h"
#include "device/error.h"
#include "facts/operator_info.h"
#include "ops/over_composites.h"
#include "results/first_call.h"
#include "results/output_metadata.h"
#include "results/stand_ins.h"
#include "stream/pace.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace openreg::aten {
namespace {

using c10::ScalarType;
using torch::jit::Stack;

// ---- the arguments of a call -----------------------------------------------

class Arguments {
 public:
  Arguments(const c10::OperatorHandle& op, const Stack& stack)
      : schema_(op.schema()),
        first_(stack.end() - static_cast<std::ptrdiff_t>(size())) {}

  size_t size() const {
    return schema_.arguments().size();
  }
  const c10::IValue& operator[](size_t index) const {
    return first_[static_cast<std::ptrdiff_t>(index)];
  }
  const c10::IValue& operator[](const char* name) const {
    const auto index = schema_.argumentIndexWithName(name);
    TORCH_INTERNAL_ASSERT(index, schema_.name(), " has no argument ", name);
    return (*this)[static_cast<size_t>(*index)];
  }
  const at::Tensor& tensor(const char* name) const {
    return (*this)[name].toTensor();
  }
  Stack copied() const {
    return Stack(first_, first_ + static_cast<std::ptrdiff_t>(size()));
  }
  /// Returns the defined tensors, except tensors in lists.
  std::vector<at::Tensor> tensors() const {
    std::vector<at::Tensor> all;
    for (size_t i = 0; i < size(); ++i) {
      if ((*this)[i].isTensor() && (*this)[i].toTensor().defined()) {
        all.push_back((*this)[i].toTensor());
      }
    }
    return all;
  }

 private:
  const c10::FunctionSchema& schema_;
  const Stack::const_iterator first_;
};

// ---- conditions ------------------------------------------------------------

using Holds = bool (*)(const Arguments& arguments);

bool is_not_empty(const Arguments& arguments) {
  const auto tensors = arguments.tensors();
  return std::none_of(tensors.begin(), tensors.end(), [](const auto& tensor) {
    return tensor.numel() == 0;
  });
}

/// As ConvParams::is_depthwise in PyTorch.
bool is_depthwise(const Arguments& arguments, int64_t dimensions) {
  const at::Tensor& input = arguments.tensor("input");
  const int64_t groups = arguments["groups"].toInt();
  return is_not_empty(arguments) && !arguments["transposed"].toBool() &&
      input.dim() == dimensions && input.size(1) == groups && groups > 1 &&
      arguments.tensor("weight").size(0) % input.size(1) == 0;
}

bool resizes(const Arguments& arguments) {
  return arguments.tensor("self").sizes().slice(2) !=
      at::IntArrayRef(arguments["output_size"].toIntVector());
}

/// cuDNN samples 4-dimensional inputs with zero padding and bilinear
/// interpolation.
bool is_not_of_cudnn(const Arguments& arguments) {
  const at::Tensor& input = arguments.tensor("input");
  const ScalarType dtype = input.scalar_type();
  return arguments["interpolation_mode"].toInt() != 0 ||
      arguments["padding_mode"].toInt() != 0 ||
      !arguments["align_corners"].toBool() || input.size(1) > 1024 ||
      (dtype != at::kFloat && dtype != at::kDouble && dtype != at::kHalf);
}

bool is_floating_point(const Arguments& arguments) {
  return arguments.tensor("self").is_floating_point();
}

template <const char* value>
bool reduces_by(const Arguments& arguments) {
  return arguments["reduce"].toStringRef() == value;
}
constexpr char kProd[] = "prod";
constexpr char kSum[] = "sum";

// The conditions by name. cuda_limits.def and docs/cuda_limits.md use the
// names.
const std::unordered_map<std::string_view, Holds>& conditions() {
  static const auto& all = *new std::unordered_map<std::string_view, Holds>{
      {"", [](const Arguments&) { return true; }},
      {"accumulate is true",
       [](const Arguments& arguments) {
         return arguments["accumulate"].toBool();
       }},
      {"depthwise",
       [](const Arguments& arguments) { return is_depthwise(arguments, 4); }},
      {"depthwise in 3 dimensions",
       [](const Arguments& arguments) { return is_depthwise(arguments, 5); }},
      {"floating point", &is_floating_point},
      {"mode is max",
       [](const Arguments& arguments) {
         return arguments["mode"].toInt() == 2;
       }},
      {"multiplies, or adds integers",
       [](const Arguments& arguments) {
         return arguments["reduce"].toStringRef() == "multiply" ||
             !is_floating_point(arguments);
       }},
      {"not cuDNN's", &is_not_of_cudnn},
      {"not empty", &is_not_empty},
      {"reduce is not sum",
       [](const Arguments& arguments) { return !reduces_by<kSum>(arguments); }},
      {"reduce is prod", &reduces_by<kProd>},
      {"resizes", &resizes},
      {"weights are given",
       [](const Arguments& arguments) {
         return !arguments["weights"].isNone();
       }},
  };
  return all;
}

// ---- the table -------------------------------------------------------------

enum class Operands : uint8_t { first, all };

struct DtypeRow {
  std::string_view name; // of the operator
  uint64_t dtypes;       // one bit each
  Operands operands;
  Holds condition;
  const char* text;
  bool is_name; // the text names the kernel in "not implemented for"
};
struct DeterminismRow {
  std::string_view name;
  Holds condition;
  const char* alert;
};
struct AssertionRow {
  std::string_view name;
  std::string_view text;
};

uint64_t bits_of(const char* names) {
  static const std::unordered_map<std::string_view, ScalarType> dtypes = {
      {"bfloat16", ScalarType::BFloat16},
      {"bool", ScalarType::Bool},
      {"float16", ScalarType::Half},
      {"int16", ScalarType::Short},
      {"int32", ScalarType::Int},
      {"int64", ScalarType::Long},
      {"int8", ScalarType::Char},
      {"uint8", ScalarType::Byte},
  };
  uint64_t bits = 0;
  std::istringstream stream(names);
  for (std::string name; stream >> name;) {
    bits |= uint64_t{1} << static_cast<unsigned>(dtypes.at(name));
  }
  return bits;
}

struct Table {
  std::vector<DtypeRow> dtypes;
  std::vector<std::string_view> missing;
  std::vector<DeterminismRow> determinism;
  std::vector<AssertionRow> assertions;
};

const Table& table() {
  static const Table& value = *new Table([] {
    Table made;
#define ADD_DTYPES(name, types, operands, condition, text, is_name) \
  made.dtypes.push_back(                                            \
      {name,                                                        \
       bits_of(types),                                              \
       Operands::operands,                                          \
       conditions().at(condition),                                  \
       text,                                                        \
       is_name});
#define CUDA_REFUSES_DTYPES(name, types, operands, condition, text, source) \
  ADD_DTYPES(name, types, operands, condition, text, true)
#define CUDA_REJECTS_DTYPES(name, types, operands, condition, text, source) \
  ADD_DTYPES(name, types, operands, condition, text, false)
#define CUDA_HAS_NO_KERNEL(name, source) made.missing.push_back(name);
#define CUDA_IS_NOT_DETERMINISTIC(name, condition, alert, source) \
  made.determinism.push_back({name, conditions().at(condition), alert});
#define CUDA_ASSERTS(name, text, source) \
  made.assertions.push_back({name, text});
#include "ops/cuda_limits.def"
#undef CUDA_REFUSES_DTYPES
#undef CUDA_REJECTS_DTYPES
#undef CUDA_HAS_NO_KERNEL
#undef CUDA_IS_NOT_DETERMINISTIC
#undef CUDA_ASSERTS
#undef ADD_DTYPES
    return made;
  }());
  return value;
}

/// Whether a row matches an operator.
bool matches(std::string_view row, const c10::OperatorName& name) {
  constexpr std::string_view kNamespace = "aten::";
  std::string_view base = name.name;
  if (!base.starts_with(kNamespace)) {
    return false;
  }
  base.remove_prefix(kNamespace.size());
  if (base.ends_with('_') && !base.ends_with("__")) {
    base.remove_suffix(1);
  }
  const size_t dot = row.find('.');
  return row.substr(0, dot) == base &&
      (dot == std::string_view::npos ||
       row.substr(dot + 1) == name.overload_name);
}

template <typename Row>
std::vector<Row> rows_of(
    const std::vector<Row>& rows,
    const c10::OperatorName& name) {
  std::vector<Row> found;
  std::copy_if(
      rows.begin(), rows.end(), std::back_inserter(found), [&](const Row& row) {
        return matches(row.name, name);
      });
  return found;
}

bool is_assertion(const c10::OperatorName& name, std::string_view what) {
  if (what.starts_with("Boolean value of Tensor with")) {
    return false; // the host checks sizes
  }
  const auto& rows = table().assertions;
  return std::any_of(rows.begin(), rows.end(), [&](const AssertionRow& row) {
    return what.find(row.text) != std::string_view::npos &&
        matches(row.name, name);
  });
}

// ---- the kernel ------------------------------------------------------------

/// Raises the errors of the CPU kernel that CUDA checks before dtypes, such as
/// wrong sizes. Runs the kernel with stand-ins for the tensors.
void check_sizes(const c10::OperatorHandle& op, Stack&& arguments) {
  StandInCall call(
      info_of(op), std::move(arguments), StandInCall::Setting::kZeros);
  try {
    if (op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU) &&
        call.replace_arguments()) {
      static_cast<void>(call.run(op));
    }
  } catch (const c10::NotImplementedError&) { // of the dtype, as on CUDA
  }
}

/// How many limited kernels this thread runs. Operators that they call are not
/// limited, because CUDA kernels call other operators. For example, histc of
/// integers calls histc of floats here.
thread_local int t_running = 0;
struct Running {
  Running() {
    ++t_running;
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    --t_running;
  }
};

/// Runs one operator with the limits of CUDA.
class LimitedKernel final : public c10::OperatorKernel {
 public:
  LimitedKernel(const c10::OperatorHandle& op, c10::SafeKernelFunction&& kernel)
      : kernel_(std::move(kernel)),
        dtypes_(rows_of(table().dtypes, op.operator_name())),
        determinism_(rows_of(table().determinism, op.operator_name())),
        is_missing_(
            std::any_of(
                table().missing.begin(),
                table().missing.end(),
                [&](std::string_view row) {
                  return matches(row, op.operator_name());
                })),
        asserts_(!rows_of(table().assertions, op.operator_name()).empty()) {}

  bool is_limited() const {
    return !dtypes_.empty() || !determinism_.empty() || is_missing_ || asserts_;
  }

  void operator()(
      const c10::OperatorHandle& op,
      c10::DispatchKeySet keys,
      Stack* stack) {
    if (t_running == 0) {
      check(op, *stack);
    }
    const Running running;
    if (asserts_) {
      run_asserting(op, keys, *stack);
    } else {
      kernel_.callBoxed(op, keys, stack);
    }
  }

 private:
  void check(const c10::OperatorHandle& op, const Stack& stack) const {
    TORCH_CHECK_NOT_IMPLEMENTED(
        !is_missing_,
        "Could not run '",
        op.operator_name(),
        "' with arguments from the '",
        c10::DeviceTypeName(kDeviceType),
        "' backend: CUDA has no kernel for it (OPENREG_CUDA_LIMITS=1).");
    const Arguments arguments(op, stack);
    for (const DtypeRow& row : dtypes_) {
      check_dtypes(op, arguments, row);
    }
    if (C10_UNLIKELY(at::globalContext().deterministicAlgorithms())) {
      for (const DeterminismRow& row : determinism_) {
        if (row.condition(arguments)) {
          at::globalContext().alertNotDeterministic(row.alert);
        }
      }
    }
  }

  static void check_dtypes(
      const c10::OperatorHandle& op,
      const Arguments& arguments,
      const DtypeRow& row) {
    const auto tensors = arguments.tensors();
    if (tensors.empty()) {
      return;
    }
    const ScalarType dtype = tensors[0].scalar_type();
    if (C10_LIKELY((row.dtypes >> static_cast<unsigned>(dtype) & 1) == 0)) {
      return;
    }
    const bool agree = row.operands == Operands::first ||
        std::all_of(tensors.begin(), tensors.end(), [&](const auto& tensor) {
                         return tensor.scalar_type() == dtype;
                       });
    if (!agree || !row.condition(arguments)) {
      return;
    }
    check_sizes(op, arguments.copied());
    TORCH_CHECK_NOT_IMPLEMENTED(
        !row.is_name, '"', row.text, "\" not implemented for '", dtype, "'");
    std::string text = row.text;
    if (const size_t place = text.find("{}"); place != std::string::npos) {
      text.replace(place, 2, c10::toString(dtype));
    }
    TORCH_CHECK(false, text);
  }

  /// Runs a kernel whose errors may be assertions. If one is, the call returns
  /// results with arbitrary values, and the device fails.
  void run_asserting(
      const c10::OperatorHandle& op,
      c10::DispatchKeySet keys,
      Stack& stack) {
    const size_t count = op.schema().arguments().size();
    const size_t base = stack.size() - count;
    const Stack arguments(
        stack.begin() + static_cast<std::ptrdiff_t>(base), stack.end());
    try {
      kernel_.callBoxed(op, keys, &stack);
    } catch (const c10::AcceleratorError&) {
      throw; // an error of the device itself
    } catch (const c10::Error& error) {
      const std::string what = error.what_without_backtrace();
      if (!is_assertion(op.operator_name(), what)) {
        throw;
      }
      stack.resize(base);
      fail(op, arguments, what, stack);
    }
  }

  static c10::DeviceIndex device_of(const Stack& arguments) {
    DeviceFinder finder;
    for (const c10::IValue& value : arguments) {
      if (value.isTensor()) {
        finder.visit(value.toTensor());
      }
    }
    return finder.result();
  }

  /// Returns the metadata of the results if it is known without running the
  /// call.
  static std::shared_ptr<const OutputMetadata> outputs_of(
      const c10::OperatorHandle& op,
      const OperatorInfo& info,
      const Stack& arguments) {
    CallKey key(op, info);
    for (const c10::IValue& value : arguments) {
      key.add(value);
    }
    if (!key.usable()) {
      return nullptr;
    }
    const auto outputs = find_output_metadata(key);
    return outputs != nullptr ? outputs : dry_run(op, info, key, arguments);
  }

  static void fail(
      const c10::OperatorHandle& op,
      const Stack& arguments,
      const std::string& what,
      Stack& stack) {
    const OperatorInfo& info = info_of(op);
    const c10::DeviceIndex device = device_of(arguments);
    const bool makes_nothing = std::none_of(
        info.returned.begin(), info.returned.end(), [](int32_t source) {
          return source < 0;
        });
    const auto outputs =
        makes_nothing ? nullptr : outputs_of(op, info, arguments);
    std::vector<at::Tensor> made; // while the device still has memory
    if (outputs != nullptr) {
      made = make_results(device, outputs->made);
    }
    assert_on_device(op, device, what);
    if (pace::is_blocking() || (!makes_nothing && outputs == nullptr)) {
      synchronize_device(device); // throws
    }
    size_t next = 0;
    for (const int32_t source : info.returned) {
      stack.emplace_back(
          source >= 0
              ? arguments[info.arguments[static_cast<size_t>(source)].index]
              : c10::IValue(made[next++]));
    }
  }

  const c10::SafeKernelFunction kernel_;
  const std::vector<DtypeRow> dtypes_;
  const std::vector<DeterminismRow> determinism_;
  const bool is_missing_;
  const bool asserts_;
};

/// Suppresses PyTorch's warning that a kernel is replaced.
class NoWarnings final : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

} // namespace

void enable_cuda_limits() {
  static bool done = false;
  if (std::exchange(done, true)) {
    return;
  }
  static auto library = OPENREG_LIBRARY_IMPL(aten, kDenseKey);
  NoWarnings handler;
  const c10::WarningUtils::WarningHandlerGuard quiet(&handler);
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findOp(name);
    // The parts of a composite operator have separate rows in the table.
    if (name.getNamespace() != "aten" || !op || !op->hasSchema() ||
        !op->hasComputedKernelForDispatchKey(kDenseKey) ||
        (!op->hasKernelForDispatchKey(kDenseKey) &&
         has_composite_kernel(*op))) {
      continue;
    }
    auto kernel = std::make_unique<LimitedKernel>(
        *op, op->getComputedKernelForDispatchKey(kDenseKey));
    if (kernel->is_limited()) {
      library.impl(
          toString(name).c_str(),
          torch::CppFunction::makeFromBoxedFunctor(std::move(kernel)));
    }
  }
  use_device_asserts(&is_assertion);
}

} // namespace openreg::aten
