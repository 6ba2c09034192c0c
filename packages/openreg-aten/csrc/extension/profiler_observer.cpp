// SPDX-License-Identifier: BSD-3-Clause
// The operator observer: while the profiler state is PRIVATEUSE1, each operator
// is recorded as a range, as for CUDA with the state NVTX.
#include "base/mechanism.h"

#include <ATen/record_function.h>
#include <torch/csrc/profiler/api.h>
#include <torch/csrc/profiler/standalone/privateuse1_observer.h>
#include <torch/csrc/profiler/stubs/base.h>
#include <torch/csrc/profiler/util.h>

#include <memory>
#include <string>
#include <unordered_set>

namespace openreg::aten {
namespace {

namespace profiler = torch::profiler::impl;

/// Marks the profiler as on in PyTorch, until it is disabled.
class ObserverState final : public profiler::ProfilerStateBase {
 public:
  explicit ObserverState(const profiler::ProfilerConfig& config)
      : ProfilerStateBase(config) {
    TORCH_CHECK(
        !config.profile_memory && !config.with_stack && !config.with_flops &&
            !config.with_modules,
        "ProfilerState.PRIVATEUSE1 records operators and, with record_shapes, "
        "their shapes; profile_memory, with_stack, with_flops and with_modules "
        "are not supported");
  }
  profiler::ActiveProfilerType profilerType() override {
    return profiler::ActiveProfilerType::PRIVATEUSE1;
  }
  void reportMemoryUsage(void*, int64_t, size_t, size_t, c10::Device) override {
  }
};

template <bool with_shapes>
std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction& called) {
  std::string name = called.name();
  if (with_shapes) {
    name += ", sizes = " +
        profiler::shapesToStr(profiler::inputSizes(called, true));
  }
  profiler::privateuse1Stubs()->rangePush(name.c_str());
  return nullptr;
}

void leave(const at::RecordFunction&, at::ObserverContext*) {
  profiler::privateuse1Stubs()->rangePop();
}

void observe(
    const profiler::ProfilerConfig& config,
    const std::unordered_set<at::RecordScope>& scopes) {
  TORCH_CHECK(
      profiler::privateuse1Stubs()->enabled(),
      "ProfilerState.PRIVATEUSE1 needs the mechanism profiler_stubs, which "
      "OPENREG_DISABLE leaves out");
  const auto state = std::make_shared<ObserverState>(config);
  profiler::ProfilerStateBase::push(state);
  state->setCallbackHandle(
      at::addThreadLocalCallback(
          at::RecordFunctionCallback(
              config.report_input_shapes ? &enter<true> : &enter<false>, &leave)
              .needsInputs(config.report_input_shapes)
              .scopes(scopes)));
}

} // namespace

OPENREG_MECHANISM_OF_PRIVATEUSE1(
    profiler_observer,
    "REGISTER_PRIVATEUSE1_OBSERVER",
    "ProfilerState.PRIVATEUSE1 causes a segmentation fault") {
  profiler::pushPRIVATEUSE1CallbacksStub.set_privateuse1_dispatch_ptr(&observe);
}

} // namespace openreg::aten
