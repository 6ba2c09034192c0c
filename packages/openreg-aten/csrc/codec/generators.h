// SPDX-License-Identifier: BSD-3-Clause
// The CPU generators of calls.
//
// A generator has a number while it lives. Where the executor is in this
// process it finds the generator itself. Where it is not, messages bring the
// state until one has arrived; the first makes the device's twin, which draws
// from then on: the state here is that of the beginning until
// fetch_generator() asks for the other.
#pragma once

#include "codec/wire.h"

#include <ATen/core/Generator.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace openreg::aten::codec {

/// A generator whose state a message brings to a device that was reset so
/// often.
struct SentGenerator {
  std::uint64_t number;
  int resets;
};

/// Writes a generator that kernels of `device` draw from. `sent` gets it if the
/// message brings its state.
void write_generator(
    Writer& out,
    const at::Generator& generator,
    c10::DeviceIndex device,
    std::vector<SentGenerator>& sent);
at::Generator read_generator(Reader& in); // throws Malformed

/// Notes that a message has arrived: others need not bring the state.
void note_arrival(const std::vector<SentGenerator>& sent);

/// The number of a generator, or 0 if no message has named it.
std::uint64_t number_of(const at::Generator& generator);
/// The generator of that number: where this process is a device, its twin.
std::optional<at::Generator> find_generator(std::uint64_t number);

std::vector<std::uint8_t> state_of(const at::Generator& generator);
/// Throws Malformed unless it is a state.
void set_state(const at::Generator& generator, ByteSpan state);

/// The generators of a value that are to live until it is read.
void collect_generators(
    const c10::IValue& value,
    std::vector<at::Generator>& generators);

} // namespace openreg::aten::codec
