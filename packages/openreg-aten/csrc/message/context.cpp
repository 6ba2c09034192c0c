// SPDX-License-Identifier: BSD-3-Clause
// Transfers the settings of the program to a device process.
#include "message/context.h"

#include "codec/values.h"
#include "device/device.h"

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <tuple>

namespace openreg::aten {
namespace {

using at::Context;
using codec::Malformed;

struct Flag {
  bool (Context::*get)() const;
  void (Context::*set)(bool);
};

constexpr Flag kFlags[] = {
    {&Context::deterministicFillUninitializedMemory,
     &Context::setDeterministicFillUninitializedMemory},
    {&Context::userEnabledMkldnn, &Context::setUserEnabledMkldnn},
    {&Context::deterministicMkldnn, &Context::setDeterministicMkldnn},
    {&Context::userEnabledNNPACK, &Context::setUserEnabledNNPACK},
    {&Context::allowFP16ReductionCPU, &Context::setAllowFP16ReductionCPU},
};
static_assert(std::size(kFlags) <= 8);

constexpr at::Float32Op kFloat32Ops[] = {
    at::Float32Op::CONV,
    at::Float32Op::RNN,
    at::Float32Op::MATMUL};
static_assert(
    std::size(kFloat32Ops) ==
    std::tuple_size_v<decltype(ContextSettings::precisions)>);

at::Float32Precision precision_of(at::Float32Op op) {
  return at::globalContext().float32Precision(at::Float32Backend::MKLDNN, op);
}

void set_deterministic(bool refuses, bool warns) {
  Context& context = at::globalContext();
  if (context.deterministicAlgorithms() != (refuses || warns) ||
      context.deterministicAlgorithmsWarnOnly() != warns) {
    context.setDeterministicAlgorithms(refuses || warns, warns);
  }
}

void set_engine(at::QEngine engine) {
  Context& context = at::globalContext();
  const auto engines = Context::supportedQEngines();
  if (context.qEngine() != engine &&
      std::find(engines.begin(), engines.end(), engine) != engines.end()) {
    context.setQEngine(engine);
  }
}

void apply(const ContextSettings& settings) {
  Context& context = at::globalContext();
  const auto dtype = c10::scalarTypeToTypeMeta(settings.default_dtype);
  if (at::get_default_dtype() != dtype) {
    at::set_default_dtype(dtype);
  }
  set_deterministic(
      settings.refuses_nondeterministic, settings.warns_of_nondeterministic);
  unsigned rest = settings.flags;
  for (const Flag& flag : kFlags) {
    const bool wanted = (rest & 1) != 0;
    rest >>= 1;
    if ((context.*flag.get)() != wanted) {
      (context.*flag.set)(wanted);
    }
  }
  for (std::size_t i = 0; i < std::size(kFloat32Ops); ++i) {
    const auto wanted =
        static_cast<at::Float32Precision>(settings.precisions[i]);
    if (precision_of(kFloat32Ops[i]) != wanted) {
      context.setFloat32Precision(
          at::Float32Backend::MKLDNN, kFloat32Ops[i], wanted);
    }
  }
  set_engine(static_cast<at::QEngine>(settings.engine));
}

/// The settings of a device process, and the kernels that run with them.
class SharedSettings {
 public:
  void acquire(const ContextSettings& settings) {
    std::unique_lock lock(mutex_);
    // A kernel that waits to change the settings has priority, or others could
    // run forever.
    changed_.wait(lock, [this] { return !changing_; });
    if (now_ != settings) {
      changing_ = true;
      idle_.wait(lock, [this] { return kernels_ == 0; });
      changing_ = false;
      changed_.notify_all();
      now_.reset(); // unknown if apply() throws
      apply(settings);
      now_ = settings;
    }
    ++kernels_;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    if (--kernels_ == 0 && changing_) {
      idle_.notify_one();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable idle_;
  std::condition_variable changed_;
  std::optional<ContextSettings> now_;
  std::size_t kernels_ = 0;
  bool changing_ = false; // a kernel waits for idle_
};

SharedSettings& shared_settings() {
  static auto* value = new SharedSettings; // threads may outlive main()
  return *value;
}

} // namespace

void write_context(codec::Writer& out) {
  const Context& context = at::globalContext();
  out.put(c10::typeMetaToScalarType(at::get_default_dtype()));
  const bool is_deterministic = context.deterministicAlgorithms();
  const bool warns = context.deterministicAlgorithmsWarnOnly();
  out.put(static_cast<std::uint8_t>(is_deterministic && !warns));
  out.put(static_cast<std::uint8_t>(is_deterministic && warns));
  std::uint8_t flags = 0;
  for (std::size_t i = 0; i < std::size(kFlags); ++i) {
    flags |= static_cast<std::uint8_t>((context.*kFlags[i].get)() << i);
  }
  out.put(flags);
  for (const at::Float32Op op : kFloat32Ops) {
    out.put(static_cast<std::uint8_t>(precision_of(op)));
  }
  out.put(static_cast<std::uint8_t>(context.qEngine()));
}

ContextSettings read_context(codec::Reader& in) {
  ContextSettings settings{};
  settings.default_dtype = codec::read_dtype(in);
  settings.refuses_nondeterministic = in.get_flag();
  settings.warns_of_nondeterministic = in.get_flag();
  settings.flags = in.get<std::uint8_t>();
  for (std::uint8_t& each : settings.precisions) {
    each = in.get<std::uint8_t>();
    if (each > static_cast<std::uint8_t>(at::Float32Precision::DEFAULT)) {
      throw Malformed("unknown float32 precision");
    }
  }
  settings.engine = in.get<std::uint8_t>();
  if (settings.engine >= static_cast<std::uint8_t>(at::QEngine::ONEDNN) + 2) {
    throw Malformed("unknown quantized engine");
  }
  return settings;
}

SettingsScope::SettingsScope(const ContextSettings& settings) {
  if (is_device_process()) {
    shared_settings().acquire(settings);
  }
}

SettingsScope::~SettingsScope() {
  if (is_device_process()) {
    shared_settings().release();
  }
}

} // namespace openreg::aten
