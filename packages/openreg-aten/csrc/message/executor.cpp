// SPDX-License-Identifier: BSD-3-Clause
// Decodes messages, runs kernels, and keeps results until they get memory.
#include "message/executor.h"

#include "base/mechanism.h"
#include "codec/components.h"
#include "codec/extent.h"
#include "codec/generators.h"
#include "codec/values.h"
#include "device/activity.h"
#include "device/device.h"
#include "device/error.h"
#include "memory/cpu_allocator.h"
#include "message/context.h"
#include "message/protocol.h"
#include "message/warnings.h"
#include "platform/library.h"
#include "results/kernel_run.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/quantized/QTensorImpl.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace openreg::aten {
namespace {

using codec::Bytes;
using codec::Malformed;
using codec::NumberedObjects;
using codec::Reader;
using codec::Writer;
using torch::jit::Stack;

constexpr std::size_t kMaxDescribed = 1 << 12;
constexpr std::int32_t kMaxThreads = 4096;

/// A failure of the kernel, not of the message.
struct KernelFailure {
  FailureTag tag;
  std::string text;
};

/// Results that have no device memory yet.
struct Described {
  std::vector<c10::Storage> storages; // in the order in which they get memory
};

struct ExecutorState {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, Described> described; // by ticket
  std::uint64_t next_ticket = 1;
};

/// Returns the file of the library that contains a symbol.
std::string library_of(const void* symbol) {
  std::string file = platform::library_of(symbol);
  TORCH_CHECK(!file.empty(), "the path of a library cannot be determined");
  return file;
}

ExecutorState& state() {
  static auto* value = new ExecutorState; // threads may outlive main()
  return *value;
}

/// Whether a range lies in a single block of the runtime. A device process does
/// not have the list of blocks, so it only checks that the range is device
/// memory.
bool is_allocated(std::uint64_t address, std::uint64_t nbytes) {
  if (is_device_process()) {
    const auto begin = reinterpret_cast<std::uintptr_t>(g_own_memory.begin);
    return address >= begin && address - begin <= g_own_memory.size &&
        nbytes <= g_own_memory.size - (address - begin);
  }
  orPointerAttributes block = OPENREG_POINTER_ATTRIBUTES_INIT;
  OPENREG_CHECK(
      orPointerGetAttributes(&block, reinterpret_cast<void*>(address)));
  if (block.type != orMemoryTypeDevice) {
    return false;
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(block.pointer);
  return nbytes <= block.size - (address - begin);
}

void* kernel_address(std::uint64_t address, std::uint64_t nbytes) {
  if (address == 0) {
    return nullptr;
  }
  const AddressRange& range = address_range();
  const auto begin = reinterpret_cast<std::uintptr_t>(range.begin);
  const auto end = reinterpret_cast<std::uintptr_t>(range.end);
  if (address < begin || address > end || nbytes > end - address) {
    throw Malformed("an address is outside device memory");
  }
  if (nbytes > 0 && !is_allocated(address, nbytes)) {
    throw Malformed("an address is not in allocated device memory");
  }
  return reinterpret_cast<std::byte*>(address) + range.distance;
}

c10::Storage wrap_memory(
    void* data,
    std::size_t nbytes,
    bool resizable,
    c10::DeleterFnPtr deleter = nullptr) {
  c10::DataPtr pointer = deleter != nullptr
      ? c10::DataPtr(data, data, deleter, c10::Device(c10::kCPU))
      : c10::DataPtr(data, c10::Device(c10::kCPU));
  return c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(),
      nbytes,
      std::move(pointer),
      &kernel_cpu_allocator(),
      resizable);
}

const codec::StorageSource kArguments{
    .device =
        [](std::uint64_t address, std::size_t nbytes, bool resizable) {
          void* data = kernel_address(address, nbytes);
          return wrap_memory(data, nbytes, resizable);
        },
    .host = codec::make_host_storage,
    .fresh = [](std::size_t) -> c10::Storage {
      throw Malformed("a storage of a call has no device address");
    },
    .without_memory =
        [](std::size_t nbytes) {
          return wrap_memory(nullptr, nbytes, /*resizable=*/false);
        }};

/// The state of an argument before the kernel ran.
class ArgumentState {
 public:
  explicit ArgumentState(const at::Tensor& tensor) {
    const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    if (impl.is_nested()) {
      return; // written in place, never resized
    }
    if (codec::has_components(impl)) {
      copy_ = codec::compose(impl, impl.device(), codec::components_of(impl));
      return;
    }
    sizes_ = tensor.sizes();
    strides_ = tensor.strides();
    offset_ = tensor.storage_offset();
    storage_ = tensor.storage().unsafeGetStorageImpl();
    conj_ = tensor.is_conj();
    neg_ = tensor.is_neg();
    quantizer_ = quantizer_of(tensor);
  }
  bool is(const at::Tensor& tensor) const {
    const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    if (codec::has_components(impl)) {
      return impl.is_nested() || is_copy(impl);
    }
    return tensor.storage().unsafeGetStorageImpl() == storage_ &&
        tensor.sizes() == sizes_ && tensor.strides() == strides_ &&
        tensor.storage_offset() == offset_ && tensor.is_conj() == conj_ &&
        tensor.is_neg() == neg_ && quantizer_of(tensor) == quantizer_;
  }

 private:
  static const at::Quantizer* quantizer_of(const at::Tensor& tensor) {
    return tensor.is_quantized()
        ? static_cast<at::QTensorImpl&>(*tensor.unsafeGetTensorImpl())
              .quantizer()
              .get()
        : nullptr;
  }
  bool is_copy(const c10::TensorImpl& tensor) const {
    const c10::TensorImpl& copy = *copy_.unsafeGetTensorImpl();
    const auto now = codec::components_of(tensor);
    const auto then = codec::components_of(copy);
    return codec::has_metadata_of(tensor, copy) &&
        std::equal(
               now.begin(),
               now.end(),
               then.begin(),
               [](const at::Tensor& one, const at::Tensor& other) {
                 return one.is_same(other);
               });
  }

  c10::DimVector sizes_;
  c10::DimVector strides_;
  std::int64_t offset_ = 0;
  const c10::StorageImpl* storage_ = nullptr;
  bool conj_ = false;
  bool neg_ = false;
  const at::Quantizer* quantizer_ = nullptr;
  at::Tensor copy_; // of a sparse tensor, with the same components
};

/// A decoded call.
struct DecodedCall {
  std::optional<c10::OperatorHandle> op;
  c10::DispatchKey key = c10::DispatchKey::CPU;
  int threads = 1;
  ContextSettings settings{};
  Stack stack;
  NumberedObjects objects;
  std::optional<ResultPlaces> results; // or the results are described
};

// In dispatcher order.
constexpr c10::DispatchKey kKeys[] = {
    c10::DispatchKey::NestedTensorCPU,
    c10::DispatchKey::SparseCsrCPU,
    c10::DispatchKey::SparseCPU,
    c10::DispatchKey::QuantizedCPU,
    c10::DispatchKey::CPU,
};

c10::DispatchKey read_key(Reader& in) {
  const auto key = static_cast<c10::DispatchKey>(in.get<std::uint16_t>());
  if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys)) {
    throw Malformed("a call names a dispatch key that is not a CPU key");
  }
  return key;
}

/// Returns the dispatch key of these arguments, or none without tensors.
std::optional<c10::DispatchKey> key_of(const Stack& stack) {
  c10::DispatchKeySet keys;
  const auto add = [&](const c10::IValue& value) {
    if (value.isTensor()) {
      keys = keys | value.toTensor().key_set();
    }
  };
  for (const c10::IValue& value : stack) {
    if (value.isList()) {
      for (const c10::IValue& each : value.toListRef()) {
        add(each);
      }
    } else {
      add(value);
    }
  }
  const auto* found = std::find_if(
      std::begin(kKeys), std::end(kKeys), [&](c10::DispatchKey key) {
        return keys.has(key);
      });
  return found == std::end(kKeys) ? std::nullopt : std::optional(*found);
}

/// Throws unless the operator has a kernel for the key, and the dispatcher
/// would choose it: the kernel relies on the kinds of its arguments. An
/// argument that names a layout decides the key. A kernel for all keys checks
/// its arguments itself.
void check_key(const DecodedCall& call) {
  const auto refuse = [&](const char* why) {
    throw Malformed(toString(call.op->operator_name()) + why);
  };
  if (!has_device_kernel(*call.op, call.key)) {
    refuse(" has no kernel for this dispatch key");
  }
  const auto key = key_of(call.stack);
  if (key && *key != call.key && call.op->hasKernelForDispatchKey(call.key) &&
      !call.op->schema().argumentIndexWithName("layout")) {
    refuse(" has arguments with a different dispatch key");
  }
  if (!codec::have_data(call.objects) && !accepts_zero_tensor(*call.op)) {
    refuse(" does not accept tensors without data");
  }
}

std::optional<ResultPlaces> read_places(Reader& in) {
  if (!in.get_flag()) {
    return std::nullopt;
  }
  ResultPlaces results;
  const std::size_t count = in.get_count();
  for (std::size_t i = 0; i < count; ++i) {
    TensorMetadata metadata = read_metadata(in);
    if (!metadata.defined) {
      results.add({}, nullptr, 0);
      continue;
    }
    const auto address = in.get<std::uint64_t>();
    const auto nbytes = in.get<std::uint64_t>();
    codec::check_extent(
        metadata.sizes,
        metadata.strides,
        /*offset=*/0,
        c10::elementSize(metadata.dtype),
        address != 0 ? nbytes : 0);
    results.add(std::move(metadata), kernel_address(address, nbytes), nbytes);
  }
  return results;
}

/// Throws unless the arguments match the schema, on which kernels rely.
void check_arguments(const c10::FunctionSchema& schema, const Stack& stack) {
  if (stack.size() != schema.arguments().size()) {
    throw Malformed(
        schema.name() + ": expected " +
        std::to_string(schema.arguments().size()) +
        " arguments, but the message has " + std::to_string(stack.size()));
  }
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (!codec::is_of_type(stack[i], argument)) {
      throw Malformed(
          "argument " + argument.name() + " of " + schema.name() +
          " has an unexpected type");
    }
  }
}

/// Thrown for an operator that exists only in the program, such as one
/// registered in Python.
struct UnknownOperator {
  c10::OperatorName name;
};

c10::OperatorHandle find_operator(std::string name, std::string overload) {
  static thread_local std::unordered_map<c10::OperatorName, c10::OperatorHandle>
      known;
  const c10::OperatorName full(std::move(name), std::move(overload));
  if (const auto found = known.find(full); found != known.end()) {
    return found->second;
  }
  const auto op = c10::Dispatcher::singleton().findSchema(full);
  if (!op) {
    throw UnknownOperator{full};
  }
  if (std::none_of(
          std::begin(kKeys), std::end(kKeys), [&](c10::DispatchKey key) {
            return has_device_kernel(*op, key);
          })) {
    throw Malformed(full.name + " cannot be called by a message");
  }
  return known.emplace(full, *op).first->second;
}

DecodedCall read_call(Reader& in) {
  DecodedCall call;
  std::string name = in.get_text();
  call.op = find_operator(std::move(name), in.get_text());
  call.key = read_key(in);
  call.threads = in.get<std::int32_t>();
  if (call.threads < 1 || call.threads > kMaxThreads) {
    throw Malformed(
        "a kernel cannot use " + std::to_string(call.threads) +
        " threads: expected 1 to " + std::to_string(kMaxThreads));
  }
  call.settings = read_context(in);
  codec::ValueReader values(in, call.objects, kArguments);
  const std::size_t count = in.get_count();
  for (std::size_t i = 0; i < count; ++i) {
    call.stack.push_back(values.read());
  }
  call.results = read_places(in);
  in.expect_end();
  check_arguments(call.op->schema(), call.stack);
  check_key(call);
  return call;
}

/// Runs a kernel, and converts its exception to KernelFailure.
template <typename Work>
std::optional<KernelFailure> attempt(const Work& work) {
  try {
    work();
    return std::nullopt;
  } catch (const c10::IndexError& error) {
    return KernelFailure{
        FailureTag::kIndexError, error.what_without_backtrace()};
  } catch (const c10::ValueError& error) {
    return KernelFailure{
        FailureTag::kValueError, error.what_without_backtrace()};
  } catch (const c10::TypeError& error) {
    return KernelFailure{
        FailureTag::kTypeError, error.what_without_backtrace()};
  } catch (const c10::NotImplementedError& error) {
    return KernelFailure{
        FailureTag::kNotImplementedError, error.what_without_backtrace()};
  } catch (const c10::LinAlgError& error) {
    return KernelFailure{
        FailureTag::kLinAlgError, error.what_without_backtrace()};
  } catch (const c10::OutOfMemoryError& error) {
    return KernelFailure{
        FailureTag::kOutOfMemoryError, error.what_without_backtrace()};
  } catch (const c10::Error& error) {
    return KernelFailure{FailureTag::kError, error.what_without_backtrace()};
  } catch (const std::bad_alloc& error) {
    return KernelFailure{FailureTag::kBadAlloc, error.what()};
  } catch (const std::exception& error) {
    return KernelFailure{FailureTag::kError, error.what()};
  }
}

void write_made(
    Writer& out,
    const std::optional<std::vector<TensorMetadata>>& made) {
  out.put(static_cast<std::uint8_t>(made.has_value()));
  if (made) {
    out.put_count(made->size());
    for (const TensorMetadata& each : *made) {
      write_metadata(out, each);
    }
  }
}

void write_done(
    Bytes& reply,
    const std::optional<std::vector<TensorMetadata>>& made = {}) {
  Writer out(reply);
  out.put(ReplyTag::kDone);
  write_made(out, made);
}

void write_failure(
    Bytes& reply,
    const KernelFailure& failure,
    const std::optional<std::vector<TensorMetadata>>& made = {}) {
  reply.clear();
  Writer out(reply);
  out.put(ReplyTag::kFailed);
  write_made(out, made);
  out.put(failure.tag);
  out.put_text(failure.text);
}

void run_into_places(DecodedCall& call, Bytes& reply) {
  std::optional<std::vector<TensorMetadata>> made; // if not as predicted
  const auto failure = attempt([&] {
    run_into(
        *call.op,
        call.key,
        call.stack,
        *call.results,
        [&](std::vector<TensorMetadata> each) {
          if (each.size() == call.results->places.size()) {
            made = std::move(each);
          }
        });
  });
  if (failure) {
    write_failure(reply, *failure, made);
  } else {
    write_done(reply, made);
  }
}

/// Writes the changed arguments and the results of the kernel.
void describe_results(
    DecodedCall& call,
    const std::vector<const void*>& buffers,
    const std::vector<ArgumentState>& before,
    Bytes& reply) {
  ExecutorState& all = state();
  Described described;
  Writer out(reply);
  out.put(ReplyTag::kDescribed);
  const std::uint64_t ticket = [&] {
    const std::lock_guard lock(all.mutex);
    return all.next_ticket++;
  }();
  out.put(ticket);
  std::vector<std::uint32_t> replaced;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (call.objects.storages[i].data() != buffers[i]) {
      replaced.push_back(static_cast<std::uint32_t>(i));
      described.storages.push_back(call.objects.storages[i]);
    }
  }
  out.put_count(replaced.size());
  for (const std::uint32_t number : replaced) {
    out.put(number);
    out.put(static_cast<std::uint64_t>(call.objects.storages[number].nbytes()));
  }
  std::vector<std::uint32_t> changed;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!before[i].is(call.objects.tensors[i])) {
      changed.push_back(static_cast<std::uint32_t>(i));
    }
  }
  codec::ValueWriter values(out, codec::Direction::kReply, call.objects);
  out.put_count(changed.size());
  for (const std::uint32_t number : changed) {
    out.put(number);
    const at::Tensor tensor = call.objects.tensors[number];
    TORCH_CHECK_NOT_IMPLEMENTED(
        values.write_metadata(tensor),
        "an argument that ",
        call.op->operator_name(),
        " changed cannot be encoded in a message");
  }
  out.put_count(call.stack.size());
  for (const c10::IValue& value : call.stack) {
    if (!values.write(value)) {
      TORCH_CHECK_NOT_IMPLEMENTED(
          !call.op->schema().is_mutable(),
          "a result of ",
          call.op->operator_name(),
          " cannot be encoded in a message");
      reply.clear();
      out.put(ReplyTag::kUndescribed);
      return;
    }
  }
  for (std::size_t i = buffers.size(); i < call.objects.storages.size(); ++i) {
    described.storages.push_back(call.objects.storages[i]);
  }
  const std::lock_guard lock(all.mutex);
  TORCH_CHECK(
      all.described.size() < kMaxDescribed,
      "too many results wait to be fetched");
  all.described.emplace(ticket, std::move(described));
}

void run_and_describe(DecodedCall& call, Bytes& reply) {
  std::vector<const void*> buffers;
  buffers.reserve(call.objects.storages.size());
  for (const c10::Storage& storage : call.objects.storages) {
    buffers.push_back(storage.data());
  }
  const auto failure = attempt([&] {
    const std::vector<ArgumentState> before(
        call.objects.tensors.begin(), call.objects.tensors.end());
    const EnqueuedKernelScope scope({});
    call.op->redispatchBoxed(c10::DispatchKeySet(call.key), &call.stack);
    describe_results(call, buffers, before, reply);
    call.stack.clear();
  });
  if (failure) {
    write_failure(reply, *failure);
  }
}

void send_generator(Reader& in, Bytes& reply) {
  const auto generator = codec::find_generator(in.get<std::uint64_t>());
  in.expect_end();
  const auto state =
      generator ? codec::state_of(*generator) : std::vector<std::uint8_t>();
  Writer out(reply);
  out.put(ReplyTag::kGenerator);
  out.put_text({reinterpret_cast<const char*>(state.data()), state.size()});
}

/// Removes and returns the results that a message names.
Described take_described(Reader& in) {
  const auto ticket = in.get<std::uint64_t>();
  ExecutorState& all = state();
  const std::lock_guard lock(all.mutex);
  const auto found = all.described.find(ticket);
  if (found == all.described.end()) {
    throw Malformed("no results are kept for this ticket");
  }
  Described described = std::move(found->second);
  all.described.erase(found);
  return described;
}

void place(Reader& in, Bytes& reply) {
  const Described described = take_described(in);
  for (const c10::Storage& storage : described.storages) {
    void* to = kernel_address(in.get<std::uint64_t>(), storage.nbytes());
    if (storage.nbytes() > 0 && storage.data() != nullptr) {
      if (to == nullptr) {
        throw Malformed("results were assigned no memory");
      }
      std::memcpy(to, storage.data(), storage.nbytes());
    }
  }
  in.expect_end();
  write_done(reply);
}

} // namespace

void execute(codec::ByteSpan message, Bytes& reply) try {
  const KernelOperators hidden;
  reply.clear();
  Reader in(message);
  switch (in.get_enum<MessageTag>()) {
    case MessageTag::kGenerator:
      send_generator(in, reply);
      break;
    case MessageTag::kCall: {
      std::optional<SettingsScope> settings;
      DecodedCall call = [&] {
        try {
          DecodedCall read = read_call(in);
          settings.emplace(read.settings);
          return read;
        } catch (const c10::Error& error) { // checks of PyTorch
          throw Malformed(error.what_without_backtrace());
        }
      }();
      const ThreadCount threads(call.threads);
      if (call.results) {
        run_into_places(call, reply);
      } else {
        run_and_describe(call, reply);
      }
      break;
    }
    case MessageTag::kPlace:
      place(in, reply);
      break;
    case MessageTag::kDrop:
      take_described(in);
      in.expect_end();
      write_done(reply);
      break;
  }
} catch (const UnknownOperator& unknown) {
  write_failure(
      reply,
      {FailureTag::kNotImplementedError,
       "the device process has no operator " + c10::toString(unknown.name) +
           ": it has the operators of PyTorch, not those registered by the "
           "program or another library (see OPENREG_ISOLATION)"});
}

bool describes_failure(const Bytes& reply) {
  Reader in(reply);
  return in.get_enum<ReplyTag>() == ReplyTag::kFailed;
}

void set_executor() {
  static std::once_flag once;
  std::call_once(once, [] {
    // In this order. The library of the runtime is loaded together with this
    // one.
    const std::vector<std::string> files = {
        library_of(reinterpret_cast<const void*>(&c10::GetDefaultCPUAllocator)),
        library_of(reinterpret_cast<const void*>(&at::get_num_threads)),
        library_of(reinterpret_cast<const void*>(&openreg_aten_start_device))};
    std::vector<const char*> paths;
    for (const std::string& file : files) {
      paths.push_back(file.c_str());
    }
    orExecutor executor = OPENREG_EXECUTOR_INIT;
    executor.execute =
        [](const void* message, size_t size, orReply_t reply, void* args) {
          Bytes bytes;
          {
            const WarningCollector warnings;
            execute({static_cast<const std::uint8_t*>(message), size}, bytes);
            warnings.append_to(bytes);
          }
          const bool failed = describes_failure(bytes);
          reply(args, bytes.data(), bytes.size());
          return failed ? 1 : 0;
        };
    executor.libraries = paths.data();
    executor.libraryCount = paths.size();
    executor.start = "openreg_aten_start_device";
    OPENREG_CHECK(orSetExecutor(&executor));
  });
}

} // namespace openreg::aten

void openreg_aten_start_device(const orMemoryView* view) {
  using namespace openreg::aten;
  become_device(*view);
  set_executor();
  // Operators of this library, and the allocator of results.
  enable_mechanisms({});
}
