// SPDX-License-Identifier: BSD-3-Clause
// Settings of the program, on their way to the process of a device.
#include "kernel/context.h"

#include "codec/values.h"
#include "device/device.h"

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

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

void read_context(codec::Reader& in) {
  const c10::ScalarType dtype = codec::read_dtype(in);
  const bool refuses = in.get_flag();
  const bool warns = in.get_flag();
  const auto flags = in.get<std::uint8_t>();
  std::uint8_t precisions[std::size(kFloat32Ops)];
  for (std::uint8_t& each : precisions) {
    each = in.get<std::uint8_t>();
    if (each > static_cast<std::uint8_t>(at::Float32Precision::DEFAULT)) {
      throw Malformed("unknown precision of float32");
    }
  }
  const auto engine = in.get<std::uint8_t>();
  if (engine >= static_cast<std::uint8_t>(at::QEngine::ONEDNN) + 2) {
    throw Malformed("unknown engine of quantized operators");
  }
  if (!is_device_process()) {
    return;
  }
  Context& context = at::globalContext();
  if (at::get_default_dtype() != c10::scalarTypeToTypeMeta(dtype)) {
    at::set_default_dtype(c10::scalarTypeToTypeMeta(dtype));
  }
  set_deterministic(refuses, warns);
  unsigned rest = flags;
  for (const Flag& flag : kFlags) {
    const bool wanted = (rest & 1) != 0;
    rest >>= 1;
    if ((context.*flag.get)() != wanted) {
      (context.*flag.set)(wanted);
    }
  }
  for (std::size_t i = 0; i < std::size(kFloat32Ops); ++i) {
    const auto wanted = static_cast<at::Float32Precision>(precisions[i]);
    if (precision_of(kFloat32Ops[i]) != wanted) {
      context.setFloat32Precision(
          at::Float32Backend::MKLDNN, kFloat32Ops[i], wanted);
    }
  }
  set_engine(static_cast<at::QEngine>(engine));
}

} // namespace openreg::aten
