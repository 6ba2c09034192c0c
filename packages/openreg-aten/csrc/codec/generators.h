// SPDX-License-Identifier: BSD-3-Clause
// The CPU generators of calls.
//
// A generator has a number while it lives. Where the executor is in this
// process it finds the generator itself. Where it is not, the first message to
// a device brings the state, and from then on the device's twin draws: the
// state here is that of the beginning until fetch_generator() asks for the
// other.
#pragma once

#include "codec/wire.h"

#include <ATen/core/Generator.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

#include <vector>

namespace openreg::aten::codec {

/// Writes a generator that kernels of `device` draw from.
void write_generator(
    Writer& out,
    const at::Generator& generator,
    c10::DeviceIndex device);
at::Generator read_generator(Reader& in); // throws Malformed

/// The number of a generator, or 0 if `device` has a twin of none such.
std::uint64_t number_of_twin(
    const at::Generator& generator,
    c10::DeviceIndex device);
/// The generator of that number. Throws Malformed.
at::Generator find_generator(std::uint64_t number);

/// Brings the state again with the next message: the last was not sent.
void forget_twin(const at::Generator& generator);

std::vector<std::uint8_t> state_of(const at::Generator& generator);
/// Throws Malformed unless it is a state.
void set_state(const at::Generator& generator, ByteSpan state);

/// The generators of a value that are to live until it is read.
void collect_generators(
    const c10::IValue& value,
    std::vector<at::Generator>& generators);

} // namespace openreg::aten::codec
