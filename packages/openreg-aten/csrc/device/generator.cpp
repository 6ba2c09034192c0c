// SPDX-License-Identifier: BSD-3-Clause
// The generator class and the default generators.
#include "device/generator.h"

#include "device/device.h"
#include "mechanism.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>
#include <vector>

namespace openreg::aten {
namespace {

class GeneratorImpl final : public c10::GeneratorImpl {
 public:
  GeneratorImpl(c10::DeviceIndex device, at::Generator cpu)
      : c10::GeneratorImpl(
            c10::Device(c10::kPrivateUse1, device),
            c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        cpu_(std::move(cpu)) {}

  // Kernels draw under the mutex of the CPU generator, so everything here takes
  // that one.
  const at::Generator& cpu() const {
    return cpu_;
  }

  void set_current_seed(uint64_t seed) override {
    const std::lock_guard lock(cpu_.mutex());
    cpu_.set_current_seed(seed);
  }
  uint64_t current_seed() const override {
    const std::lock_guard lock(cpu_.mutex());
    return cpu_.current_seed();
  }
  uint64_t seed() override {
    const std::lock_guard lock(cpu_.mutex());
    return cpu_.seed();
  }
  // A Mersenne Twister has no offset; pickling asks for it and sets it back.
  void set_offset(uint64_t offset) override {
    TORCH_CHECK(
        offset == 0,
        "OpenReg Generator does not use offset: expected 0, got ",
        offset);
  }
  uint64_t get_offset() const override {
    return 0;
  }
  void set_state(const c10::TensorImpl& state) override {
    const std::lock_guard lock(cpu_.mutex());
    cpu_.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    const std::lock_guard lock(cpu_.mutex());
    return cpu_.unsafeGetGeneratorImpl()->get_state();
  }

 private:
  GeneratorImpl* clone_impl() const override {
    return new GeneratorImpl(device_.index(), cpu_.clone());
  }

  mutable at::Generator cpu_; // its mutex is no part of its state
};

at::Generator make_generator(c10::DeviceIndex device, uint64_t seed) {
  return at::make_generator<GeneratorImpl>(
      device, at::make_generator<at::CPUGeneratorImpl>(seed));
}

bool g_enabled = false;

} // namespace

bool generators_enabled() {
  return g_enabled;
}

const at::Generator& default_generator(c10::DeviceIndex device) {
  static const auto* generators = [] {
    auto* made = new std::vector<at::Generator>;
    for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
      made->push_back(make_generator(index, c10::default_rng_seed_val));
    }
    return made;
  }();
  return generators->at(static_cast<std::size_t>(index_or_current(device)));
}

at::Generator new_generator(c10::DeviceIndex device) {
  return make_generator(index_or_current(device), c10::default_rng_seed_val);
}

const at::Generator& cpu_generator(const at::Generator& generator) {
  TORCH_CHECK(
      generator.device().type() == c10::kPrivateUse1,
      "Expected a '",
      c10::DeviceTypeName(c10::kPrivateUse1, /*lower_case=*/true),
      "' device type for generator but found '",
      generator.device().type(),
      "'");
  return static_cast<GeneratorImpl*>(generator.unsafeGetGeneratorImpl())->cpu();
}

OPENREG_MECHANISM(generator, "c10::GeneratorImpl, through the hooks") {
  g_enabled = true;
}

} // namespace openreg::aten
