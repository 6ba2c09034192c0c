// SPDX-License-Identifier: BSD-3-Clause
// Writing of calls, reading of replies.
#include "kernel/message.h"

#include "codec/generators.h"
#include "device/device.h"
#include "device/error.h"
#include "device/settings.h"
#include "device/stream.h"
#include "kernel/executor.h"
#include "kernel/warnings.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <new>
#include <string>
#include <utility>

namespace openreg::aten {
namespace {

using codec::Malformed;
using codec::Numbered;
using codec::Reader;
using codec::ValueReader;
using codec::ValueWriter;
using codec::Writer;
using torch::jit::Stack;

/// Whether the operator opens a file of the host, or takes or makes a tensor
/// that is an object in disguise, which its bytes are not.
bool is_the_hosts(const c10::OperatorHandle& op) {
  const std::string& name = op.operator_name().name;
  return name == "aten::from_file" || name.starts_with("aten::fbgemm_");
}

void write_places(Writer& out, const ResultPlaces* results) {
  out.put(static_cast<std::uint8_t>(results != nullptr));
  if (results == nullptr) {
    return;
  }
  out.put_count(results->places.size());
  std::size_t next = 0;
  for (const auto& [metadata, data] : results->places) {
    write_metadata(out, metadata);
    if (!metadata.defined) {
      continue;
    }
    out.put(
        static_cast<std::uint64_t>(
            reinterpret_cast<std::uintptr_t>(to_device(data))));
    out.put(
        static_cast<std::uint64_t>(
            data != nullptr ? results->memory[next++].size : 0));
  }
}

[[noreturn]] void throw_failure(FailureTag tag, const std::string& text) {
  switch (tag) {
    case FailureTag::kError:
      break;
    case FailureTag::kIndexError:
      C10_THROW_ERROR(IndexError, text);
    case FailureTag::kValueError:
      C10_THROW_ERROR(ValueError, text);
    case FailureTag::kTypeError:
      C10_THROW_ERROR(TypeError, text);
    case FailureTag::kNotImplementedError:
      C10_THROW_ERROR(NotImplementedError, text);
    case FailureTag::kLinAlgError:
      C10_THROW_ERROR(LinAlgError, text);
    case FailureTag::kOutOfMemoryError:
      C10_THROW_ERROR(OutOfMemoryError, text);
    case FailureTag::kBadAlloc:
      throw std::bad_alloc();
  }
  C10_THROW_ERROR(Error, text);
}

/// Throws the failure that a reply reports.
[[noreturn]] void throw_failure(Reader& in) {
  const auto failure = in.get_enum<FailureTag>();
  const std::string text = in.get_text();
  in.expect_end();
  throw_failure(failure, text);
}

c10::Storage make_storage(c10::DataPtr&& data, std::size_t nbytes) {
  return c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(),
      nbytes,
      std::move(data),
      &kernel_cpu_allocator(),
      /*resizable=*/true);
}

void write_address(Writer& out, const c10::Storage& storage) {
  out.put(
      static_cast<std::uint64_t>(
          reinterpret_cast<std::uintptr_t>(to_device(storage.data()))));
}

/// Asks the executor to drop described results unless they got their places.
class DropUnplaced {
 public:
  explicit DropUnplaced(std::uint64_t ticket) : ticket_(ticket) {}
  DropUnplaced(const DropUnplaced&) = delete;
  DropUnplaced& operator=(const DropUnplaced&) = delete;
  ~DropUnplaced() {
    if (placed) {
      return;
    }
    codec::Bytes message;
    codec::Bytes reply;
    Writer out(message);
    out.put(MessageTag::kDrop);
    out.put(ticket_);
    exchange("the drop of results", message, reply);
  }

  bool placed = false;

 private:
  std::uint64_t ticket_;
};

/// Throws unless the values are what the schema says of the results.
void check_results(const c10::FunctionSchema& schema, const Stack& stack) {
  const auto& returns = schema.returns();
  bool fits = stack.size() == returns.size();
  for (std::size_t i = 0; fits && i < stack.size(); ++i) {
    fits = codec::is_of_type(stack[i], returns[i]);
  }
  if (!fits) {
    throw Malformed("the results are not those of " + schema.name());
  }
}

/// Generators whose state was written, but not sent.
void forget_twins(const Stack& stack) {
  for (const c10::IValue& value : stack) {
    if (value.isGenerator()) {
      codec::forget_twin(value.toGenerator());
    }
  }
}

} // namespace

void write_metadata(Writer& out, const TensorMetadata& metadata) {
  out.put(static_cast<std::uint8_t>(metadata.defined));
  if (metadata.defined) {
    out.put(metadata.dtype);
    out.put_numbers(metadata.sizes);
    out.put_numbers(metadata.strides);
  }
}

TensorMetadata read_metadata(Reader& in) {
  if (!in.get_flag()) {
    return {};
  }
  const auto dtype = codec::read_dtype(in);
  const auto sizes = in.get_numbers<std::int64_t>();
  const auto strides = in.get_numbers<std::int64_t>();
  if (sizes.size() != strides.size()) {
    throw Malformed("sizes and strides of a result do not fit");
  }
  return {
      true,
      dtype,
      c10::DimVector(sizes.begin(), sizes.end()),
      c10::DimVector(strides.begin(), strides.end())};
}

bool sends_messages() {
  static const bool value = [] {
    const bool sends = !is_thread_setting();
    if (sends) {
      set_executor();
    }
    return sends;
  }();
  return value;
}

void exchange(const char* name, codec::ByteSpan message, codec::Bytes& reply) {
  OPENREG_CHECK(orLaunchMessageBlocking(
      current_handle(current_device()),
      name,
      message.data(),
      message.size(),
      [](void* args, const void* data, size_t size) {
        const auto* bytes = static_cast<const std::uint8_t*>(data);
        const codec::ByteSpan whole(bytes, size);
        const codec::ByteSpan reply_alone = repeat_warnings(whole);
        static_cast<codec::Bytes*>(args)->assign(
            reply_alone.begin(), reply_alone.end());
      },
      &reply));
}

void fetch_generator(const at::Generator& generator, c10::DeviceIndex device) {
  if (kernels_reach_memory()) {
    return;
  }
  const std::uint64_t number = codec::number_of_twin(generator, device);
  if (number == 0) {
    return;
  }
  codec::Bytes message;
  codec::Bytes reply;
  Writer out(message);
  out.put(MessageTag::kGenerator);
  out.put(number);
  const CurrentDevice scope(device);
  exchange("the read of a generator", message, reply);
  Reader in(reply);
  if (in.get_enum<ReplyTag>() != ReplyTag::kGenerator) {
    throw Malformed("the reply is not the state of a generator");
  }
  const std::string state = in.get_text();
  in.expect_end();
  codec::set_state(
      generator,
      {reinterpret_cast<const std::uint8_t*>(state.data()), state.size()});
}

bool write_call(
    codec::Bytes& message,
    const c10::OperatorHandle& op,
    c10::DispatchKey key,
    c10::DeviceIndex device,
    const Stack& stack,
    const ResultPlaces* results,
    Numbered& numbered) {
  if (is_the_hosts(op)) {
    return false;
  }
  Writer out(message);
  out.put(MessageTag::kCall);
  out.put_text(op.operator_name().name);
  out.put_text(op.operator_name().overload_name);
  out.put(key);
  out.put(static_cast<std::int32_t>(at::get_num_threads()));
  const at::Context& context = at::globalContext();
  out.put(c10::typeMetaToScalarType(at::get_default_dtype()));
  out.put(static_cast<std::uint8_t>(context.deterministicAlgorithms()));
  out.put(
      static_cast<std::uint8_t>(
          context.deterministicFillUninitializedMemory()));
  out.put(static_cast<std::uint8_t>(context.qEngine()));
  out.put_count(stack.size());
  numbered.device = device;
  ValueWriter values(out, codec::Direction::kCall, numbered);
  for (const c10::IValue& value : stack) {
    if (!values.write(value)) {
      forget_twins(stack);
      return false;
    }
  }
  write_places(out, results);
  return true;
}

void read_done(
    codec::ByteSpan reply,
    c10::function_ref<void(std::vector<TensorMetadata>)> tell) {
  Reader in(reply);
  const auto tag = in.get_enum<ReplyTag>();
  if (tag != ReplyTag::kDone && tag != ReplyTag::kFailed) {
    throw Malformed("the reply is not to such a call");
  }
  if (in.get_flag()) {
    std::vector<TensorMetadata> made(in.get_count());
    for (TensorMetadata& each : made) {
      each = read_metadata(in);
    }
    tell(std::move(made));
  }
  if (tag == ReplyTag::kFailed) {
    throw_failure(in);
  }
  in.expect_end();
}

std::optional<Stack> read_described(
    const codec::Bytes& reply,
    const c10::FunctionSchema& schema,
    Numbered& numbered) {
  Reader in(reply);
  const auto tag = in.get_enum<ReplyTag>();
  if (tag == ReplyTag::kUndescribed) {
    return std::nullopt;
  }
  if (tag == ReplyTag::kFailed && !in.get_flag()) {
    throw_failure(in);
  }
  if (tag != ReplyTag::kDescribed) {
    throw Malformed("the reply is not to such a call");
  }
  codec::Bytes places;
  Writer out(places);
  out.put(MessageTag::kPlace);
  const auto ticket = in.get<std::uint64_t>();
  out.put(ticket);
  DropUnplaced drop(ticket);
  const codec::StorageSource source{
      .device = [](std::uint64_t, std::size_t, bool) -> c10::Storage {
        throw Malformed("a reply has an address");
      },
      .host = [](codec::ByteSpan) -> c10::Storage {
        throw Malformed("a reply has bytes of the host");
      },
      .fresh =
          [](std::size_t nbytes) {
            return make_storage(
                kernel_cpu_allocator().allocate(nbytes), nbytes);
          }};
  // Storages of arguments that got another buffer.
  const std::size_t known = numbered.storages.size();
  const std::size_t replaced = in.get_count();
  for (std::size_t i = 0; i < replaced; ++i) {
    const auto number = in.get<std::uint32_t>();
    const auto nbytes = in.get<std::uint64_t>();
    if (number >= known) {
      throw Malformed("the reply replaces a storage that is not known");
    }
    c10::StorageImpl& storage =
        *numbered.storages[number].unsafeGetStorageImpl();
    storage.set_data_ptr_noswap(kernel_cpu_allocator().allocate(nbytes));
    storage.set_nbytes(nbytes);
    write_address(out, numbered.storages[number]);
  }
  ValueReader values(in, numbered, source);
  // Arguments that got other metadata.
  const std::size_t changed = in.get_count();
  for (std::size_t i = 0; i < changed; ++i) {
    const auto number = in.get<std::uint32_t>();
    if (number >= numbered.tensors.size()) {
      throw Malformed("the reply changes a tensor that is not known");
    }
    const at::Tensor tensor = numbered.tensors[number];
    values.read_metadata(tensor);
  }
  Stack stack;
  const std::size_t count = in.get_count();
  for (std::size_t i = 0; i < count; ++i) {
    stack.push_back(values.read());
  }
  in.expect_end();
  check_results(schema, stack);
  for (std::size_t i = known; i < numbered.storages.size(); ++i) {
    write_address(out, numbered.storages[i]);
  }
  codec::Bytes placed;
  drop.placed = true; // or refused, and dropped as well
  exchange("the placing of results", places, placed);
  read_done(placed, [](auto) {});
  return stack;
}

} // namespace openreg::aten
