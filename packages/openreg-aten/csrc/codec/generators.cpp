// SPDX-License-Identifier: BSD-3-Clause
// Numbers of generators, and the twins that devices have.
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

constexpr std::size_t kMostTwins = 1 << 16;

struct Known {
  c10::weak_intrusive_ptr<c10::GeneratorImpl> generator;
  int sent = -1; // to the device that was reset so often
};

struct Generators {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, Known> by_number;
  // No other one comes to an address: a weak reference keeps it taken.
  std::unordered_map<const c10::GeneratorImpl*, std::uint64_t> numbers;
  std::uint64_t next = 1;
  std::size_t worth_a_look = 64;
  // Those of hosts, where this process is a device.
  std::unordered_map<std::uint64_t, at::Generator> twins;

  void forget_the_dead() {
    if (by_number.size() < worth_a_look) {
      return;
    }
    std::erase_if(numbers, [&](const auto& each) {
      return by_number.at(each.second).generator.expired();
    });
    std::erase_if(by_number, [](const auto& each) {
      return each.second.generator.expired();
    });
    worth_a_look = 2 * by_number.size() + 64;
  }

  /// The lock is held.
  std::uint64_t number_of(const at::Generator& generator) {
    c10::GeneratorImpl* impl = generator.unsafeGetGeneratorImpl();
    if (const auto found = numbers.find(impl); found != numbers.end()) {
      return found->second;
    }
    forget_the_dead();
    const std::uint64_t number = next++;
    by_number.emplace(
        number,
        Known{c10::weak_intrusive_ptr<c10::GeneratorImpl>(
            generator.getIntrusivePtr())});
    numbers[impl] = number;
    return number;
  }
};

Generators& generators() {
  static auto* value = new Generators; // for threads that outlive main()
  return *value;
}

} // namespace

void write_generator(
    Writer& out,
    const at::Generator& generator,
    c10::DeviceIndex device) {
  Generators& all = generators();
  const std::lock_guard lock(all.mutex);
  const std::uint64_t number = all.number_of(generator);
  out.put(number);
  bool brings_state = false;
  if (!kernels_reach_memory()) {
    Known& known = all.by_number.at(number);
    const int resets = reset_count(device);
    brings_state = std::exchange(known.sent, resets) != resets;
  }
  out.put(static_cast<std::uint8_t>(brings_state));
  if (brings_state) {
    const auto state = state_of(generator);
    out.put_text({reinterpret_cast<const char*>(state.data()), state.size()});
  }
}

at::Generator read_generator(Reader& in) {
  const auto number = in.get<std::uint64_t>();
  if (!in.get_flag()) {
    return find_generator(number);
  }
  const std::string state = in.get_text();
  if (!is_device_process()) {
    throw Malformed("a message brings a generator that is here");
  }
  auto twin = at::make_generator<at::CPUGeneratorImpl>();
  set_state(
      twin,
      {reinterpret_cast<const std::uint8_t*>(state.data()), state.size()});
  Generators& all = generators();
  const std::lock_guard lock(all.mutex);
  if (all.twins.size() >= kMostTwins) {
    throw Malformed("there are too many generators");
  }
  return all.twins.insert_or_assign(number, std::move(twin)).first->second;
}

std::uint64_t number_of_twin(
    const at::Generator& generator,
    c10::DeviceIndex device) {
  Generators& all = generators();
  const std::lock_guard lock(all.mutex);
  const auto found = all.numbers.find(generator.unsafeGetGeneratorImpl());
  return found != all.numbers.end() &&
          all.by_number.at(found->second).sent == reset_count(device)
      ? found->second
      : 0;
}

void forget_twin(const at::Generator& generator) {
  Generators& all = generators();
  const std::lock_guard lock(all.mutex);
  const auto found = all.numbers.find(generator.unsafeGetGeneratorImpl());
  if (found != all.numbers.end()) {
    all.by_number.at(found->second).sent = -1;
  }
}

at::Generator find_generator(std::uint64_t number) {
  Generators& all = generators();
  const std::lock_guard lock(all.mutex);
  if (const auto twin = all.twins.find(number); twin != all.twins.end()) {
    return twin->second;
  }
  const auto found = all.by_number.find(number);
  auto impl = found == all.by_number.end()
      ? c10::intrusive_ptr<c10::GeneratorImpl>()
      : found->second.generator.lock();
  if (!impl) {
    throw Malformed("generator " + std::to_string(number) + " is not known");
  }
  return at::Generator(std::move(impl));
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
    throw Malformed("the state of a generator is too long");
  }
  const auto tensor = at::detail::empty_cpu(
      {static_cast<std::int64_t>(state.size())}, at::TensorOptions(at::kByte));
  std::memcpy(tensor.mutable_data_ptr(), state.data(), state.size());
  c10::GeneratorImpl* impl = generator.unsafeGetGeneratorImpl();
  const std::lock_guard lock(impl->mutex_);
  impl->set_state(*tensor.unsafeGetTensorImpl()); // a c10::Error if it is none
}

void collect_generators(
    const c10::IValue& value,
    std::vector<at::Generator>& generators) {
  if (value.isGenerator()) {
    generators.push_back(value.toGenerator());
  }
}

} // namespace openreg::aten::codec
