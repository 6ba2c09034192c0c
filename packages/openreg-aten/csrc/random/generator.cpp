// SPDX-License-Identifier: BSD-3-Clause
// The generator class and the default generators.
#include "random/generator.h"

#include "base/keys.h"
#include "base/mechanism.h"
#include "device/device.h"
#include "device/gil.h"
#include "random/generator_state.h"
#include "stream/capture.h"
#include "stream/stream.h"
#include "stream/stream_event.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace openreg::aten {
namespace {

bool g_enabled = false;
bool g_offset = false;
bool g_graphsafe = false;
FetchGenerator g_fetch = nullptr;

/// A seed and an offset, as in CUDA's generators.
struct SeedAndOffset {
  uint64_t seed;
  uint64_t offset;
};

c10::intrusive_ptr<c10::TensorImpl> to_tensor(const SeedAndOffset& state) {
  const auto tensor =
      at::detail::empty_cpu({sizeof(state)}, at::TensorOptions(at::kByte));
  std::memcpy(tensor.mutable_data_ptr(), &state, sizeof(state));
  return tensor.getIntrusivePtr();
}

/// Returns the bytes of a state. Throws for a state that is not a tensor of
/// bytes on the CPU, or has no data, such as a fake tensor.
const uint8_t* bytes_of(const c10::TensorImpl& state) {
  at::detail::check_rng_state(state);
  return state.data_dtype_initialized<uint8_t>();
}

SeedAndOffset from_tensor(const c10::TensorImpl& tensor) {
  SeedAndOffset state{};
  std::memcpy(&state, bytes_of(tensor), sizeof(state));
  return state;
}

/// Returns a CPU generator with the CPU state `state`. The state is copied,
/// because PyTorch reads a state with a storage offset from the wrong address.
at::Generator cpu_generator_with(const c10::TensorImpl& state) {
  const uint8_t* bytes = bytes_of(state);
  auto made = at::make_generator<at::CPUGeneratorImpl>();
  const int64_t size = made.unsafeGetGeneratorImpl()->get_state()->numel();
  TORCH_CHECK(
      state.numel() == size,
      "RNG state is wrong size: it has ",
      state.numel(),
      " bytes; accepted: ",
      g_offset ? c10::str(sizeof(SeedAndOffset), " (seed and offset) or ") : "",
      size,
      " (a generator of the CPU)");
  const auto copy = at::detail::empty_cpu({size}, at::TensorOptions(at::kByte));
  std::memcpy(copy.mutable_data_ptr(), bytes, copy.nbytes());
  made.unsafeGetGeneratorImpl()->set_state(*copy.unsafeGetTensorImpl());
  return made;
}

/// Waits until the kernels of a snapshot have drawn, and reads back the state
/// that its CPU generator then has.
void wait_for_draws(const GeneratorState::Snapshot& snapshot) {
  StreamEvent(snapshot.last).wait();
  if (g_fetch != nullptr) {
    g_fetch(snapshot.cpu, snapshot.device);
  }
}

class GeneratorImpl final : public c10::GeneratorImpl {
 public:
  GeneratorImpl(c10::DeviceIndex device, std::shared_ptr<GeneratorState> state)
      : c10::GeneratorImpl(c10::Device(kDeviceType, device), kDenseKeySet),
        state_(std::move(state)) {}

  at::Generator cpu_for(c10::DeviceIndex device, orStream_t stream) {
    if (const auto capture = capture_of(stream)) {
      return capture->stand_in_for(state());
    }
    return cpu_generator_for(*state(), device, stream);
  }

  void set_current_seed(uint64_t seed) override {
    // As on CUDA, so that a function that seeds the generator can be captured.
    if (is_captured(device_.index())) {
      TORCH_CHECK(
          seed == current_seed(),
          kErrorName,
          "GeneratorImpl::set_current_seed can be called during stream capture "
          "only if new seed is the same as the original seed, but ",
          seed,
          " is not ",
          current_seed());
      return;
    }
    state()->set_seed(seed);
  }
  uint64_t current_seed() const override {
    return state()->snapshot().cpu.current_seed();
  }
  uint64_t seed() override {
    check_not_captured("seed");
    const uint64_t seed = c10::detail::getNonDeterministicRandom();
    set_current_seed(seed);
    return seed;
  }

  // Pickling gets and sets an offset even if offsets are disabled.
  void set_offset(uint64_t offset) override {
    check_not_captured("set_offset");
    if (g_offset) {
      return state()->set_offset(current_seed(), offset);
    }
    TORCH_CHECK(
        offset == 0,
        "OpenReg Generator does not use offset: expected 0, got ",
        offset);
  }
  uint64_t get_offset() const override {
    check_not_captured("get_offset");
    if (!g_offset) {
      return 0;
    }
    const auto [state, snapshot] = drawn();
    const auto offset = state->offset_of(snapshot);
    TORCH_CHECK(
        offset,
        "this OpenReg Generator has no offset: its state was set with "
        "set_state() and is not reached from seed ",
        snapshot.cpu.current_seed(),
        " within 2^30 draws, or it caches a normal number drawn too long ago. "
        "Use get_state(), which returns all 5056 bytes of the CPU generator");
    return *offset;
  }

  /// Returns 16 bytes, a seed and an offset, or the bytes of the CPU generator
  /// if there is no offset.
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    check_not_captured("get_state");
    const auto [state, snapshot] = drawn();
    const auto offset = g_offset ? state->offset_of(snapshot) : std::nullopt;
    if (!offset) {
      const std::lock_guard lock(snapshot.cpu.unsafeGetGeneratorImpl()->mutex_);
      return snapshot.cpu.unsafeGetGeneratorImpl()->get_state();
    }
    return to_tensor({snapshot.cpu.current_seed(), *offset});
  }
  void set_state(const c10::TensorImpl& state) override {
    check_not_captured("set_state");
    if (g_offset && state.numel() == sizeof(SeedAndOffset)) {
      const auto [seed, offset] = from_tensor(state);
      this->state()->set_offset(seed, offset);
      return;
    }
    this->state()->set_generator(cpu_generator_with(state));
  }

  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override {
    if (!g_graphsafe) {
      return c10::GeneratorImpl::graphsafe_get_state();
    }
    return c10::make_intrusive<GeneratorImpl>(device_.index(), state());
  }
  void graphsafe_set_state(
      const c10::intrusive_ptr<c10::GeneratorImpl>& from) override {
    if (!g_graphsafe) {
      return c10::GeneratorImpl::graphsafe_set_state(from);
    }
    const auto* other = dynamic_cast<const GeneratorImpl*>(from.get());
    TORCH_CHECK(other != nullptr, "Expected an OpenReg Generator");
    auto state = other->state();
    const std::lock_guard lock(own_mutex_);
    state_ = std::move(state);
  }

 private:
  /// A replay draws from another position and seed than the capture.
  void check_not_captured(const char* call) const {
    TORCH_CHECK(
        !is_captured(device_.index()),
        "Cannot call GeneratorImpl::",
        call,
        " during graph capture: each replay draws from the state that the "
        "generator then has");
  }

  using Drawn =
      std::pair<std::shared_ptr<GeneratorState>, GeneratorState::Snapshot>;

  GeneratorImpl* clone_impl() const override {
    const GeneratorState::Snapshot snapshot = drawn().second;
    const std::lock_guard lock(snapshot.cpu.unsafeGetGeneratorImpl()->mutex_);
    return new GeneratorImpl(
        device_.index(),
        std::make_shared<GeneratorState>(
            snapshot.cpu.clone(), snapshot.origin));
  }

  std::shared_ptr<GeneratorState> state() const {
    const std::lock_guard lock(own_mutex_);
    return state_;
  }

  /// Returns the state after the kernels with its CPU generator have drawn.
  Drawn drawn() const {
    auto state = this->state();
    auto snapshot = state->snapshot();
    if (snapshot.last != nullptr) {
      wait_for(snapshot);
    }
    return {std::move(state), std::move(snapshot)};
  }

  /// PyTorch's bindings call this with the GIL and the mutex of the base class.
  /// Other threads wait for that mutex with the GIL, so both are released, and
  /// taken again in the same order.
  void wait_for(const GeneratorState::Snapshot& snapshot) const {
    std::mutex& base = const_cast<GeneratorImpl*>(this)->mutex_;
    const bool held = !base.try_lock();
    if (held) {
      const GilRelease released;
      base.unlock();
      wait_for_draws(snapshot);
    } else {
      base.unlock();
      const GilRelease released;
      wait_for_draws(snapshot);
    }
    if (held) {
      base.lock();
    }
  }

  mutable std::mutex own_mutex_; // PyTorch holds that of the base class
  std::shared_ptr<GeneratorState> state_; // shared by graphsafe_set_state
};

at::Generator make_generator(c10::DeviceIndex device, uint64_t seed) {
  return at::make_generator<GeneratorImpl>(
      device, std::make_shared<GeneratorState>(seed));
}

} // namespace

bool generators_enabled() {
  return g_enabled;
}

void set_fetch_generator(FetchGenerator fetch) {
  g_fetch = fetch;
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

at::Generator cpu_generator_for(
    GeneratorState& state,
    c10::DeviceIndex device,
    orStream_t stream) {
  at::Generator cpu = state.for_kernel(device, stream);
  while (C10_UNLIKELY(!cpu.defined())) {
    const GilRelease released;
    const auto snapshot = state.snapshot();
    if (snapshot.last != nullptr) { // another thread has not moved it
      wait_for_draws(snapshot);
      state.move_from(snapshot);
    }
    cpu = state.for_kernel(device, stream);
  }
  return cpu;
}

at::Generator prepare_cpu_generator(
    c10::DeviceIndex device,
    const std::optional<at::Generator>& generator) {
  // Through the hooks, which have none if the mechanism is disabled.
  const at::Generator& chosen = generator
      ? *generator
      : at::globalContext().defaultGenerator(c10::Device(kDeviceType, device));
  TORCH_CHECK(
      chosen.device().type() == kDeviceType,
      "Expected a '",
      device_type_name(),
      "' device type for generator but found '",
      chosen.device().type(),
      "'");
  return static_cast<GeneratorImpl*>(chosen.unsafeGetGeneratorImpl())
      ->cpu_for(device, current_handle(device));
}

OPENREG_MECHANISM(
    generator,
    "c10::GeneratorImpl, through the hooks",
    "no random numbers, no torch.Generator for the device") {
  g_enabled = true;
}

OPENREG_MECHANISM(
    rng_offset,
    "GeneratorImpl::get_offset, the 16 bytes of a seed and an offset",
    "random operators on DTensors fail") {
  g_offset = true;
}

OPENREG_MECHANISM(
    rng_graphsafe,
    "GeneratorImpl::graphsafe_get_state, register_graphsafe_rng_device_type",
    "torch.compile fails on checkpoints that draw random numbers") {
  g_graphsafe = true; // torch-openreg then registers it with AOTAutograd
}

} // namespace openreg::aten
