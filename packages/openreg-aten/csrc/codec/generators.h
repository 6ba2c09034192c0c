// SPDX-License-Identifier: BSD-3-Clause
// The CPU generators that calls use.
//
// A generator has a number for its lifetime. An executor in this process finds
// the generator by its number. A device process needs a copy, called the twin:
// messages contain the generator state until one has arrived, and the first one
// creates the twin. The twin then draws the numbers, and the state in this
// process is outdated until fetch_generator() reads it back.
#pragma once

#include "codec/wire.h"

#include <ATen/core/Generator.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace openreg::aten::codec {

/// A generator whose state a message contains, and the reset count of the
/// device.
struct SentGenerator {
  std::uint64_t number;
  int resets;
};

/// Writes a generator that kernels of `device` use. Appends it to `sent` if the
/// message contains its state.
void write_generator(
    Writer& out,
    const at::Generator& generator,
    c10::DeviceIndex device,
    std::vector<SentGenerator>& sent);
at::Generator read_generator(Reader& in); // throws Malformed

/// Marks the generators as known to the device, because their message has
/// arrived. Later messages leave out the state.
void note_arrival(const std::vector<SentGenerator>& sent);

/// Returns the number of a generator, or 0 if no message has contained it.
std::uint64_t number_of(const at::Generator& generator);
/// Returns the generator with this number. In a device process this is the
/// twin.
std::optional<at::Generator> find_generator(std::uint64_t number);

std::vector<std::uint8_t> state_of(const at::Generator& generator);
/// Throws Malformed if `state` is not a generator state.
void set_state(const at::Generator& generator, ByteSpan state);

/// Collects the generators in a value that must stay alive until a kernel reads
/// it.
void collect_generators(
    const c10::IValue& value,
    std::vector<at::Generator>& generators);

} // namespace openreg::aten::codec
