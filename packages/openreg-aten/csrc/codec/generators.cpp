// SPDX-License-Identifier: BSD-3-Clause
// Assigns numbers to generators, and keeps the twins in device processes.
#include "codec/generators.h"

#include "device/device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>

#include <cstring>
#include <limits>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

namespace openreg::aten::codec {
namespace {

constexpr std::size_t kMaxTwins = 1 << 16;

struct Known {
  c10::weak_intrusive_ptr<c10::GeneratorImpl> generator;
  c10::DeviceIndex device;
  int arrived = -1; // the reset count at which the device received it
};

struct Generators {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, Known> by_number;
  // The weak reference of an entry keeps its address from being reused.
  std::unordered_map<const c10::GeneratorImpl*, std::uint64_t> numbers;
  std::uint64_t next = 1;
  std::size_t cleanup_size = 64;
  // Numbers of destroyed generators whose twins the device can drop.
  std::unordered_map<c10::DeviceIndex, std::vector<std::uint64_t>> destroyed;
  // Copies of host generators, if this process is a device.
  std::unordered_map<std::uint64_t, at::Generator> twins;

  void drop_destroyed() {
    if (by_number.size() < cleanup_size) {
      return;
    }
    std::erase_if(numbers, [&](const auto& each) {
      return by_number.at(each.second).generator.expired();
    });
    std::erase_if(by_number, [this](const auto& each) {
      const bool is_destroyed = each.second.generator.expired();
      if (is_destroyed && !kernels_reach_memory()) {
        destroyed[each.second.device].push_back(each.first);
      }
      return is_destroyed;
    });
    cleanup_size = 2 * by_number.size() + 64;
  }

  /// The caller holds the lock.
  std::uint64_t number_of(
      const at::Generator& generator,
      c10::DeviceIndex device) {
    c10::GeneratorImpl* impl = generator.unsafeGetGeneratorImpl();
    if (const auto found = numbers.find(impl); found != numbers.end()) {
      return found->second;
    }
    drop_destroyed();
    const std::uint64_t number = next++;
    by_number.emplace(
        number,
        Known{
            c10::weak_intrusive_ptr<c10::GeneratorImpl>(
                generator.getIntrusivePtr()),
            device});
    numbers[impl] = number;
    return number;
  }
};

Generators& generators() {
  static auto* value = new Generators; // threads may outlive main()
  return *value;
}

} // namespace

void write_generator(
    Writer& out,
    const at::Generator& generator,
    c10::DeviceIndex device,
    std::vector<SentGenerator>& sent) {
  Generators& all = generators();
  const std::lock_guard lock(all.mutex);
  const std::uint64_t number = all.number_of(generator, device);
  out.put(number);
  bool contains_state = false;
  if (!kernels_reach_memory()) {
    Known& known = all.by_number.at(number);
    known.device = device;
    const int resets = reset_count(device);
    contains_state = known.arrived != resets;
    if (contains_state) {
      sent.push_back({number, resets});
    }
  }
  out.put(static_cast<std::uint8_t>(contains_state));
  if (contains_state) {
    const auto state = state_of(generator);
    out.put_text({reinterpret_cast<const char*>(state.data()), state.size()});
    out.put_numbers(std::exchange(all.destroyed[device], {}));
  }
}

at::Generator read_generator(Reader& in) {
  const auto number = in.get<std::uint64_t>();
  if (!in.get_flag()) {
    auto found = find_generator(number);
    if (!found) {
      throw Malformed("unknown generator " + std::to_string(number));
    }
    return *std::move(found);
  }
  const std::string state = in.get_text();
  const auto destroyed = in.get_numbers<std::uint64_t>();
  if (!is_device_process()) {
    throw Malformed(
        "a message contains a generator state, which only a device process "
        "accepts");
  }
  Generators& all = generators();
  const std::lock_guard lock(all.mutex);
  for (const std::uint64_t each : destroyed) {
    all.twins.erase(each);
  }
  if (const auto twin = all.twins.find(number); twin != all.twins.end()) {
    return twin->second; // an earlier message contained it
  }
  if (all.twins.size() >= kMaxTwins) {
    throw Malformed(
        "too many generators: at most " + std::to_string(kMaxTwins));
  }
  auto twin = at::make_generator<at::CPUGeneratorImpl>();
  set_state(
      twin,
      {reinterpret_cast<const std::uint8_t*>(state.data()), state.size()});
  return all.twins.emplace(number, std::move(twin)).first->second;
}

void note_arrival(const std::vector<SentGenerator>& sent) {
  if (sent.empty()) {
    return;
  }
  Generators& all = generators();
  const std::lock_guard lock(all.mutex);
  for (const auto& [number, resets] : sent) {
    if (const auto found = all.by_number.find(number);
        found != all.by_number.end()) {
      found->second.arrived = resets;
    }
  }
}

std::uint64_t number_of(const at::Generator& generator) {
  Generators& all = generators();
  const std::lock_guard lock(all.mutex);
  const auto found = all.numbers.find(generator.unsafeGetGeneratorImpl());
  return found != all.numbers.end() ? found->second : 0;
}

std::optional<at::Generator> find_generator(std::uint64_t number) {
  Generators& all = generators();
  const std::lock_guard lock(all.mutex);
  if (const auto twin = all.twins.find(number); twin != all.twins.end()) {
    return twin->second;
  }
  const auto found = all.by_number.find(number);
  auto impl = found == all.by_number.end()
      ? c10::intrusive_ptr<c10::GeneratorImpl>()
      : found->second.generator.lock();
  return impl ? std::optional(at::Generator(std::move(impl))) : std::nullopt;
}

std::vector<std::uint8_t> state_of(const at::Generator& generator) {
  c10::GeneratorImpl* impl = generator.unsafeGetGeneratorImpl();
  const std::lock_guard lock(impl->mutex_);
  const auto state = impl->get_state();
  const auto* data = static_cast<const std::uint8_t*>(state->data());
  return {data, data + state->numel()};
}

void set_state(const at::Generator& generator, ByteSpan state) {
  if (state.size() > std::numeric_limits<std::uint16_t>::max()) {
    throw Malformed("a generator state is too long");
  }
  const auto tensor = at::detail::empty_cpu(
      {static_cast<std::int64_t>(state.size())}, at::TensorOptions(at::kByte));
  std::memcpy(tensor.mutable_data_ptr(), state.data(), state.size());
  c10::GeneratorImpl* impl = generator.unsafeGetGeneratorImpl();
  const std::lock_guard lock(impl->mutex_);
  // Throws c10::Error if the state is invalid.
  impl->set_state(*tensor.unsafeGetTensorImpl());
}

void collect_generators(
    const c10::IValue& value,
    std::vector<at::Generator>& generators) {
  if (value.isGenerator()) {
    generators.push_back(value.toGenerator());
  }
}

} // namespace openreg::aten::codec
