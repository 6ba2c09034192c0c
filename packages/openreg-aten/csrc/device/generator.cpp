// SPDX-License-Identifier: BSD-3-Clause
// The generator class and the default generators.
#include "device/generator.h"

#include "device/device.h"
#include "device/gil.h"
#include "device/stream.h"
#include "device/stream_event.h"
#include "mechanism.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

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

  at::Generator cpu_for(orStream_t stream) {
    const std::lock_guard lock(own_mutex_);
    if (last_ != nullptr && last_ != stream) {
      StreamEvent(last_).hold(stream);
    }
    last_ = stream;
    return cpu_;
  }

  // Enqueued kernels keep the CPU generator that they were given, so a new
  // beginning waits for none of them.
  void set_current_seed(uint64_t seed) override {
    put(at::make_generator<at::CPUGeneratorImpl>(seed));
  }
  uint64_t current_seed() const override {
    const std::lock_guard lock(own_mutex_);
    return cpu_.current_seed();
  }
  uint64_t seed() override {
    auto made = at::make_generator<at::CPUGeneratorImpl>();
    const uint64_t seed = made.seed();
    put(std::move(made));
    return seed;
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
    auto made = at::make_generator<at::CPUGeneratorImpl>();
    made.unsafeGetGeneratorImpl()->set_state(state);
    put(std::move(made));
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    at::Generator cpu = drawn();
    const std::lock_guard lock(cpu.mutex());
    return cpu.unsafeGetGeneratorImpl()->get_state();
  }

 private:
  GeneratorImpl* clone_impl() const override {
    at::Generator cpu = drawn();
    const std::lock_guard lock(cpu.mutex());
    return new GeneratorImpl(device_.index(), cpu.clone());
  }

  void put(at::Generator cpu) {
    const std::lock_guard lock(own_mutex_);
    cpu_ = std::move(cpu);
    last_ = nullptr;
  }

  /// The CPU generator once the kernels that were given it have drawn.
  at::Generator drawn() const {
    std::unique_lock lock(own_mutex_);
    const at::Generator cpu = cpu_;
    const orStream_t last = last_;
    lock.unlock();
    if (last != nullptr) {
      wait_for(last);
    }
    return cpu;
  }

  /// PyTorch's bindings call with the GIL and the mutex of the base class,
  /// which other threads wait for with the GIL: both are given up, and taken
  /// again in that order.
  void wait_for(orStream_t last) const {
    std::mutex& base = const_cast<GeneratorImpl*>(this)->mutex_;
    const bool held = !base.try_lock();
    if (held) {
      const GilRelease released;
      base.unlock();
      StreamEvent(last).wait();
    } else {
      base.unlock();
      const GilRelease released;
      StreamEvent(last).wait();
    }
    if (held) {
      base.lock();
    }
  }

  mutable std::mutex own_mutex_; // PyTorch holds the one of the base class
  at::Generator cpu_;
  orStream_t last_ = nullptr; // whose kernel was given it last
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

at::Generator present_generator(
    c10::DeviceIndex device,
    const std::optional<at::Generator>& generator) {
  // Through the hooks, which have none if the mechanism is left out.
  const at::Generator& chosen = generator
      ? *generator
      : at::globalContext().defaultGenerator(
            c10::Device(c10::kPrivateUse1, device));
  TORCH_CHECK(
      chosen.device().type() == c10::kPrivateUse1,
      "Expected a '",
      c10::DeviceTypeName(c10::kPrivateUse1, /*lower_case=*/true),
      "' device type for generator but found '",
      chosen.device().type(),
      "'");
  return static_cast<GeneratorImpl*>(chosen.unsafeGetGeneratorImpl())
      ->cpu_for(current_handle(device));
}

OPENREG_MECHANISM(
    generator,
    "c10::GeneratorImpl, through the hooks",
    "no random numbers, no torch.Generator of the device") {
  g_enabled = true;
}

} // namespace openreg::aten
