// SPDX-License-Identifier: BSD-3-Clause
// Writes calls and reads replies.
#include "message/message.h"

#include "codec/components.h"
#include "codec/generators.h"
#include "device/activity.h"
#include "device/device.h"
#include "device/error.h"
#include "device/settings.h"
#include "facts/operator_info.h"
#include "message/context.h"
#include "message/executor.h"
#include "message/warnings.h"
#include "stream/stream.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <limits>
#include <new>
#include <string>
#include <utility>

namespace openreg::aten {
namespace {

using codec::Malformed;
using codec::NumberedObjects;
using codec::Reader;
using codec::ValueReader;
using codec::ValueWriter;
using codec::Writer;
using torch::jit::Stack;

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

c10::Storage wrap_memory(
    c10::DataPtr&& data,
    std::size_t nbytes,
    c10::Allocator* allocator) {
  return c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(),
      nbytes,
      std::move(data),
      allocator,
      /*resizable=*/allocator != nullptr);
}

const codec::StorageSource kResults{
    .device = [](std::uint64_t, std::size_t, bool) -> c10::Storage {
      throw Malformed("a reply contains a device address");
    },
    .host = [](codec::ByteSpan) -> c10::Storage {
      throw Malformed("a reply contains host data");
    },
    .fresh =
        [](std::size_t nbytes) {
          c10::Allocator& allocator = kernel_cpu_allocator();
          return wrap_memory(allocator.allocate(nbytes), nbytes, &allocator);
        },
    .without_memory =
        [](std::size_t nbytes) {
          c10::DataPtr nothing(nullptr, c10::Device(c10::kCPU));
          return wrap_memory(std::move(nothing), nbytes, nullptr);
        }};

/// Describes a message that is not an operator call.
orLaunchInfo info_of_message(const char* name, orActivityKind kind) {
  orLaunchInfo info = OPENREG_LAUNCH_INFO_INIT;
  info.name = name;
  info.kind = kind;
  return info;
}

/// A message that assigns memory to described results. The device then copies
/// the results there.
class Placement {
 public:
  explicit Placement(std::uint64_t ticket) {
    out_.put(MessageTag::kPlace);
    out_.put(ticket);
  }

  void add(const c10::Storage& storage) {
    out_.put(
        static_cast<std::uint64_t>(
            reinterpret_cast<std::uintptr_t>(to_device(storage.data()))));
    bytes_ += storage.nbytes();
  }
  /// If this throws, the device drops the results.
  void send() const {
    orLaunchInfo info = info_of_message(
        "the placement of results",
        bytes_ > 0 ? orActivityMemcpy : orActivityHostFunc);
    info.direction = orMemcpyDeviceToDevice;
    info.hostMemory = orMemoryTypeDevice;
    info.bytes = bytes_;
    codec::Bytes reply;
    exchange(info, message_, reply);
    read_done(reply, /*count=*/0, [](auto) {});
  }

 private:
  codec::Bytes message_;
  Writer out_{message_};
  std::uint64_t bytes_ = 0;
};

/// Requests the executor to drop described results.
void drop(std::uint64_t ticket) {
  codec::Bytes message;
  codec::Bytes reply;
  Writer out(message);
  out.put(MessageTag::kDrop);
  out.put(ticket);
  exchange(
      info_of_message("the drop of results", orActivityHostFunc),
      message,
      reply);
}

/// The arguments that an operator writes, with their component tensors. A reply
/// may change only these.
class Written {
 public:
  Written(const OperatorInfo& info, const Stack& arguments) {
    for (const OperatorInfo::Argument& argument : info.arguments) {
      const c10::IValue& value = arguments.at(argument.index);
      if (!argument.written) {
        continue;
      }
      if (value.isTensor()) {
        add(value.toTensor());
      } else if (value.isList()) {
        for (const c10::IValue& each : value.toListRef()) {
          if (each.isTensor()) {
            add(each.toTensor());
          }
        }
      }
    }
  }
  bool has(const at::Tensor& tensor) const {
    return std::any_of(
        tensors_.begin(), tensors_.end(), [&](const at::Tensor& each) {
          return each.is_same(tensor);
        });
  }
  bool has(const c10::Storage& storage) const {
    return std::any_of(
        tensors_.begin(), tensors_.end(), [&](const at::Tensor& each) {
          return each.has_storage() &&
              each.storage().unsafeGetStorageImpl() ==
              storage.unsafeGetStorageImpl();
        });
  }

 private:
  void add(const at::Tensor& tensor) {
    if (!tensor.defined()) {
      return;
    }
    tensors_.push_back(tensor);
    const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    if (codec::has_components(impl)) {
      for (const at::Tensor& component : codec::components_of(impl)) {
        tensors_.push_back(component);
      }
    }
  }

  std::vector<at::Tensor> tensors_;
};

/// Removes host tensors from the objects that a reply can name, because their
/// memory would become device memory.
void drop_host_tensors(NumberedObjects& objects) {
  const auto is_on_host = [](const c10::Storage& storage) {
    return storage.data() != nullptr && to_device(storage.data()) == nullptr;
  };
  for (at::Tensor& tensor : objects.tensors) {
    if (tensor.has_storage() && is_on_host(tensor.storage())) {
      tensor.reset();
    }
  }
  for (c10::Storage& storage : objects.storages) {
    if (is_on_host(storage)) {
      storage = {};
    }
  }
}

/// Throws unless the values match the results in the schema. A result that is
/// an argument must be the same tensor. If the argument is quantized, a new
/// quantized tensor is accepted, because some kernels return one.
void check_results(
    const c10::FunctionSchema& schema,
    const OperatorInfo& info,
    const Stack& arguments,
    const Stack& stack) {
  const auto& returns = schema.returns();
  bool fits = stack.size() == returns.size();
  for (std::size_t i = 0; fits && i < stack.size(); ++i) {
    fits = codec::is_of_type(stack[i], returns[i]);
    const std::int32_t source = info.returned[i];
    if (fits && source >= 0 && stack[i].isTensor()) {
      const auto index = info.arguments[static_cast<std::size_t>(source)].index;
      const at::Tensor& made = stack[i].toTensor();
      const at::Tensor& given = arguments.at(index).toTensor();
      fits = made.is_same(given) ||
          (made.defined() && made.is_quantized() && given.defined() &&
           given.is_quantized());
    }
  }
  if (!fits) {
    throw Malformed(
        "the number or types of the results do not match " + schema.name());
  }
}

/// Reads the changed arguments and the results, and adds new buffers to
/// `places`.
Stack read_results(
    Reader& in,
    Placement& places,
    const c10::OperatorHandle& op,
    const Stack& arguments,
    NumberedObjects& objects) {
  const OperatorInfo& info = info_of(op);
  const Written written(info, arguments);
  drop_host_tensors(objects);
  // Storages of arguments that got a new buffer.
  const std::size_t known = objects.storages.size();
  const std::size_t replaced = in.get_count();
  for (std::size_t i = 0; i < replaced; ++i) {
    const auto number = in.get<std::uint32_t>();
    const auto nbytes = in.get<std::uint64_t>();
    // Other tensors may be views of it.
    if (number >= known || !written.has(objects.storages[number]) ||
        !objects.storages[number].resizable() ||
        nbytes < objects.storages[number].nbytes()) {
      throw Malformed(
          "the reply replaces a storage that the call must not change");
    }
    c10::StorageImpl& storage =
        *objects.storages[number].unsafeGetStorageImpl();
    storage.set_data_ptr_noswap(kernel_cpu_allocator().allocate(nbytes));
    storage.set_nbytes(nbytes);
    places.add(objects.storages[number]);
  }
  ValueReader values(in, objects, kResults);
  // Arguments with changed metadata.
  const std::size_t changed = in.get_count();
  for (std::size_t i = 0; i < changed; ++i) {
    const auto number = in.get<std::uint32_t>();
    if (number >= objects.tensors.size() ||
        !written.has(objects.tensors[number])) {
      throw Malformed(
          "the reply changes a tensor that the call must not change");
    }
    const at::Tensor tensor = objects.tensors[number];
    values.read_metadata(tensor);
  }
  Stack stack;
  const std::size_t count = in.get_count();
  for (std::size_t i = 0; i < count; ++i) {
    stack.push_back(values.read());
  }
  in.expect_end();
  check_results(op.schema(), info, arguments, stack);
  for (std::size_t i = known; i < objects.storages.size(); ++i) {
    places.add(objects.storages[i]);
  }
  return stack;
}

} // namespace

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

void exchange(
    const orLaunchInfo& info,
    codec::ByteSpan message,
    codec::Bytes& reply) {
  OPENREG_CHECK(orLaunchMessageBlockingWithInfo(
      current_handle(current_device()),
      message.data(),
      message.size(),
      [](void* args, const void* data, size_t size) {
        const auto* bytes = static_cast<const std::uint8_t*>(data);
        const codec::ByteSpan whole(bytes, size);
        const codec::ByteSpan reply_only = repeat_warnings(whole);
        static_cast<codec::Bytes*>(args)->assign(
            reply_only.begin(), reply_only.end());
      },
      &reply,
      &info));
}

void call_executor(codec::ByteSpan message, codec::Bytes& reply) {
  if (kernels_reach_memory()) {
    execute(message, reply);
  } else {
    exchange(
        info_of_message("a message of the program", orActivityKernel),
        message,
        reply);
  }
}

void fetch_generator(const at::Generator& generator, c10::DeviceIndex device) {
  if (kernels_reach_memory()) {
    return;
  }
  const std::uint64_t number = codec::number_of(generator);
  if (number == 0) {
    return;
  }
  codec::Bytes message;
  codec::Bytes reply;
  Writer out(message);
  out.put(MessageTag::kGenerator);
  out.put(number);
  const CurrentDevice scope(device);
  exchange(
      info_of_message("the read of a generator", orActivityHostFunc),
      message,
      reply);
  Reader in(reply);
  if (in.get_enum<ReplyTag>() != ReplyTag::kGenerator) {
    throw Malformed("the reply is not a generator state");
  }
  const std::string state = in.get_text();
  in.expect_end();
  if (state.empty()) {
    return; // without a twin, no kernel has drawn
  }
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
    NumberedObjects& objects) {
  if (!has_device_kernel(op, key)) {
    return false;
  }
  Writer out(message);
  out.put(MessageTag::kCall);
  out.put_text(op.operator_name().name);
  out.put_text(op.operator_name().overload_name);
  out.put(key);
  out.put(static_cast<std::int32_t>(at::get_num_threads()));
  write_context(out);
  out.put_count(stack.size());
  objects.device = device;
  ValueWriter values(out, codec::Direction::kCall, objects);
  for (const c10::IValue& value : stack) {
    if (!values.write(value)) {
      return false;
    }
  }
  write_places(out, results);
  return codec::have_data(objects) || accepts_zero_tensor(op);
}

void read_done(
    codec::ByteSpan reply,
    std::size_t count,
    c10::function_ref<void(std::vector<TensorMetadata>)> report) {
  Reader in(reply);
  const auto tag = in.get_enum<ReplyTag>();
  if (tag != ReplyTag::kDone && tag != ReplyTag::kFailed) {
    throw Malformed(
        "the reply has tag " + std::to_string(static_cast<int>(tag)) +
        ", which is not a reply to this call");
  }
  if (in.get_flag()) {
    if (in.get_count() != count) {
      throw Malformed(
          "the reply does not describe the " + std::to_string(count) +
          " results of the call");
    }
    std::vector<TensorMetadata> made(count);
    for (TensorMetadata& each : made) {
      each = read_metadata(in);
    }
    report(std::move(made));
  }
  if (tag == ReplyTag::kFailed) {
    throw_failure(in);
  }
  in.expect_end();
}

std::optional<Stack> read_described(
    const codec::Bytes& reply,
    const c10::OperatorHandle& op,
    const Stack& arguments,
    NumberedObjects& objects) {
  Reader in(reply);
  const auto tag = in.get_enum<ReplyTag>();
  if (tag == ReplyTag::kUndescribed) {
    return std::nullopt;
  }
  if (tag == ReplyTag::kFailed && !in.get_flag()) {
    throw_failure(in);
  }
  if (tag != ReplyTag::kDescribed) {
    throw Malformed(
        "the reply has tag " + std::to_string(static_cast<int>(tag)) +
        ", which is not a reply to this call");
  }
  const auto ticket = in.get<std::uint64_t>();
  Placement places(ticket);
  Stack stack;
  try {
    stack = read_results(in, places, op, arguments, objects);
  } catch (...) {
    drop(ticket);
    throw;
  }
  places.send();
  return stack;
}

} // namespace openreg::aten
