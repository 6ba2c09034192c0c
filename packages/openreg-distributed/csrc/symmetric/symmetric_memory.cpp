// SPDX-License-Identifier: BSD-3-Clause
// The ranks exchange handles of their blocks in a collective, and open each
// other's blocks.
#include "symmetric/symmetric_memory.h"

#include "base/gathered.h"
#include "occl/backend.h"
#include "occl/streams.h"
#include "symmetric/signals.h"

#include <c10/core/DeviceGuard.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp>

#include <algorithm>
#include <device_type.h>
#include <exception>
#include <gil_release.h>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace openreg::distributed {
namespace {

namespace symmetric = c10d::symmetric_memory;

constexpr size_t kPadAlignment = 16; // bytes

c10::Device device_of(int index) {
  return {device_type(), static_cast<c10::DeviceIndex>(index)};
}

void* offset(void* pointer, size_t bytes) {
  return static_cast<std::byte*>(pointer) + bytes;
}

void warn_of(orError_t error) {
  // A forked child drops inherited objects silently.
  if (error != orSuccess && error != orErrorInitialization) {
    TORCH_WARN("SymmetricMemory: ", orGetErrorMessage());
  }
}

template <typename Value>
Value* kernel_pointer(void* device_pointer) {
  void* pointer = nullptr;
  check(orGetKernelPointer(&pointer, device_pointer));
  return static_cast<Value*>(pointer);
}

/// Device memory of this rank.
class Buffer {
 public:
  Buffer(size_t size, int device) : device_(device) {
    const c10::DeviceGuard guard(device_of(device));
    check(orMalloc(&pointer_, size));
  }
  /// Waits for the device, whose kernels may need the GIL.
  ~Buffer() {
    // The runtime may be unloaded already.
    if (!symmetric::is_finalizing()) {
      const GilRelease no_gil;
      warn_of(orFree(pointer_));
    }
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* pointer() const {
    return pointer_;
  }
  int device() const {
    return device_;
  }

 private:
  void* pointer_ = nullptr;
  int device_;
};

/// The bytes of a tensor, followed by the signal pad.
class Block {
 public:
  Block(size_t size, int device)
      : size_(size),
        pad_at_((size + kPadAlignment - 1) / kPadAlignment * kPadAlignment),
        pad_size_(symmetric::get_signal_pad_size()),
        buffer_(pad_at_ + pad_size_, device) {
    const c10::DeviceGuard guard(device_of(device));
    check(orMemset(offset(pointer(), pad_at_), 0, pad_size_));
  }

  void* pointer() const {
    return buffer_.pointer();
  }
  size_t size() const {
    return size_;
  }
  size_t pad_at() const {
    return pad_at_;
  }
  size_t pad_size() const {
    return pad_size_;
  }
  int device() const {
    return buffer_.device();
  }

 private:
  size_t size_;
  size_t pad_at_;
  size_t pad_size_;
  Buffer buffer_;
};

/// The block of another rank.
class OpenBlock {
 public:
  OpenBlock(const orIpcMemHandle_t& handle, int rank) {
    TORCH_CHECK(
        orIpcOpenMemHandle(&pointer_, handle, orIpcMemLazyEnablePeerAccess) ==
            orSuccess,
        "SymmetricMemory: the memory of rank ",
        rank,
        " cannot be opened; all ranks must be processes of one user on one "
        "host: ",
        orGetErrorMessage());
  }
  ~OpenBlock() {
    if (!symmetric::is_finalizing()) {
      warn_of(orIpcCloseMemHandle(pointer_));
    }
  }
  OpenBlock(const OpenBlock&) = delete;
  OpenBlock& operator=(const OpenBlock&) = delete;

  void* pointer() const {
    return pointer_;
  }

 private:
  void* pointer_ = nullptr;
};

/// The description of a block for the other ranks.
struct Offer {
  orIpcMemHandle_t handle;
  uint64_t size;
  uint64_t pad_size;
  int64_t process;
  int64_t device;
};

/// The blocks of all ranks. Kernels use a mapping without owning it. Only host
/// objects own it, and its destructor waits for the device, so it is never
/// destroyed on a stream's thread.
struct Mapping {
  std::shared_ptr<Block> own;
  std::vector<std::unique_ptr<OpenBlock>> others; // null for the own rank
  std::vector<void*> buffers;
  std::vector<void*> pads;
  std::unique_ptr<Buffer> tables; // both, for kernels
  std::unique_ptr<Signals> signals;
  std::shared_ptr<Pending> pending;
  int rank = 0;
  std::vector<int> global_ranks;

  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    tables.reset(); // first, because it waits for the device
    if (symmetric::is_finalizing()) {
      static_cast<void>(signals.release()); // nothing has waited
    }
  }
};

/// The result of rendezvous(): a mapping, and the tensor's offset in it.
class Handle final : public symmetric::SymmetricMemory {
 public:
  Handle(std::shared_ptr<const Mapping> mapping, size_t offset)
      : mapping_(std::move(mapping)), offset_(offset) {}

  std::vector<void*> get_buffer_ptrs() override {
    return mapping_->buffers;
  }
  std::vector<void*> get_signal_pad_ptrs() override {
    return mapping_->pads;
  }
  void** get_buffer_ptrs_dev() override {
    return static_cast<void**>(mapping_->tables->pointer());
  }
  void** get_signal_pad_ptrs_dev() override {
    return get_buffer_ptrs_dev() + mapping_->buffers.size();
  }
  size_t get_buffer_size() override {
    return mapping_->own->size();
  }
  size_t get_offset() override {
    return offset_;
  }
  bool has_multicast_support() override {
    return false;
  }
  void* get_multicast_ptr() override {
    return nullptr;
  }
  int get_rank() override {
    return mapping_->rank;
  }
  int get_world_size() override {
    return static_cast<int>(mapping_->buffers.size());
  }
  c10::Device get_device() override {
    return device_of(mapping_->own->device());
  }
  const std::vector<int>& get_rank_to_global_rank() override {
    return mapping_->global_ranks;
  }
  bool world_within_direct_access() override {
    return true;
  }

  void barrier(int channel, size_t timeout_ms) override {
    mapping_->signals->check("barrier", channel);
    enqueue("barrier_kernel", [=](const Signals& signals) {
      signals.barrier(channel, Milliseconds(timeout_ms));
    });
  }
  void put_signal(int rank, int channel, size_t timeout_ms) override {
    mapping_->signals->check_rank("put_signal", rank);
    mapping_->signals->check("put_signal", channel);
    enqueue("put_signal_kernel", [=](const Signals& signals) {
      signals.put(rank, channel, Milliseconds(timeout_ms));
    });
  }
  void wait_signal(int rank, int channel, size_t timeout_ms) override {
    mapping_->signals->check_rank("wait_signal", rank);
    mapping_->signals->check("wait_signal", channel);
    enqueue("wait_signal_kernel", [=](const Signals& signals) {
      signals.wait(rank, channel, Milliseconds(timeout_ms));
    });
  }

 private:
  template <typename Run>
  void enqueue(const char* name, Run run) const {
    mapping_->pending->enqueue(
        current_stream(static_cast<c10::DeviceIndex>(mapping_->own->device())),
        name,
        [run, signals = mapping_->signals.get()] { run(*signals); });
  }

  std::shared_ptr<const Mapping> mapping_;
  size_t offset_;
};

class Allocator final : public symmetric::SymmetricMemoryAllocator {
 public:
  void* alloc(
      size_t size,
      int device,
      const std::optional<std::string>& group_name) override {
    const int index = device < 0 ? current_device() : device;
    int reachable = 0;
    check(orDeviceGetAttribute(&reachable, orDevAttrKernelPointers, index));
    TORCH_CHECK(
        reachable != 0,
        "SymmetricMemory needs device memory in the rank's own process: "
        "OPENREG_ISOLATION=process is not supported");
    auto block = std::make_shared<Block>(size, index);
    void* pointer = block->pointer();
    const std::lock_guard lock(mutex_);
    blocks_[pointer] = {std::move(block), group_name, {}};
    return pointer;
  }

  void free(void* pointer) override {
    Entry ended; // destroyed outside of the lock: it waits for the device
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(pointer);
    if (found != blocks_.end()) {
      ended = std::move(found->second);
      blocks_.erase(found);
    }
  }

  size_t get_alloc_size(void* pointer) override {
    const std::lock_guard lock(mutex_);
    return at(pointer).second.block->size();
  }

  c10::intrusive_ptr<symmetric::SymmetricMemory> rendezvous(
      void* pointer,
      const std::optional<std::string>& group_name) override {
    std::shared_ptr<Block> block;
    std::string name;
    {
      const std::lock_guard lock(mutex_);
      const auto& entry = at(pointer).second;
      const auto& chosen = group_name ? group_name : entry.group_name;
      TORCH_CHECK(
          chosen.has_value(),
          "SymmetricMemory: rendezvous() needs a group, because the memory was "
          "allocated without one");
      name = *chosen;
      block = entry.block;
    }
    const auto offset_in_block = static_cast<size_t>(
        static_cast<std::byte*>(pointer) -
        static_cast<std::byte*>(block->pointer()));
    const auto group = c10d::resolve_process_group(name);
    const auto backend = group->getBackend(device_type());
    auto* occl = dynamic_cast<OcclBackend*>(backend.get());
    TORCH_CHECK(
        occl != nullptr,
        "SymmetricMemory: the group has the backend ",
        backend->getBackendName(),
        " for the device, but rendezvous() needs occl");
    std::shared_ptr<const Mapping> mapping; // of an earlier call
    {
      const std::lock_guard lock(mutex_);
      mapping = at(pointer).second.mappings[name];
    }
    // An earlier group may have had the same name.
    if (!mapping || mapping->pending != occl->pending()) {
      const GilRelease no_gil;
      mapping = meet(*occl, name, std::move(block));
      auto earlier = mapping; // destroyed outside of the lock
      const std::lock_guard lock(mutex_);
      at(pointer).second.mappings[name].swap(earlier);
    }
    return c10::make_intrusive<Handle>(std::move(mapping), offset_in_block);
  }

  bool has_multicast_support(int /*device*/) override {
    return false;
  }
  c10::DeviceType supported_device_type() override {
    return device_type();
  }
  std::string name() override {
    return "OCCL";
  }
  bool has_allocation(void* pointer) override {
    const std::lock_guard lock(mutex_);
    return find(pointer) != blocks_.end();
  }

 private:
  struct Entry {
    std::shared_ptr<Block> block;
    std::optional<std::string> group_name;
    // By group name.
    std::map<std::string, std::shared_ptr<const Mapping>> mappings;
  };
  using Blocks = std::map<void*, Entry>;

  Blocks::iterator find(void* pointer) {
    auto next = blocks_.upper_bound(pointer);
    if (next == blocks_.begin()) {
      return blocks_.end();
    }
    --next;
    const auto& block = *next->second.block;
    return pointer < offset(block.pointer(), block.pad_at()) ? next
                                                             : blocks_.end();
  }

  Blocks::reference at(void* pointer) {
    const auto found = find(pointer);
    TORCH_CHECK(
        found != blocks_.end(),
        "SymmetricMemory: the tensor was not allocated by "
        "torch.distributed._symmetric_memory.empty()");
    return *found;
  }

  /// Called by all ranks of the group in the same order.
  static std::shared_ptr<const Mapping> meet(
      OcclBackend& backend,
      const std::string& name,
      std::shared_ptr<Block> block) {
    const int rank = backend.getRank();
    const int size = backend.getSize();
    const auto gather = [&](const at::Tensor& all, const at::Tensor& own) {
      backend.meet(all, own);
    };

    Offer own{
        {},
        block->size(),
        block->pad_size(),
        process_number(),
        block->device()};
    check(orIpcGetMemHandle(&own.handle, block->pointer()));
    const auto offers = all_gathered(own, size, gather);
    for (int other = 0; other < size; ++other) {
      const Offer& offer = offers[static_cast<size_t>(other)];
      TORCH_CHECK(
          offer.size == own.size && offer.pad_size == own.pad_size,
          "SymmetricMemory: all ranks must allocate the same size, but rank ",
          rank,
          " has ",
          own.size,
          " bytes and a signal pad of ",
          own.pad_size,
          ", and rank ",
          other,
          " has ",
          offer.size,
          " and ",
          offer.pad_size);
    }

    std::shared_ptr<const Mapping> mapping;
    std::exception_ptr failure;
    try {
      mapping = open(backend, name, std::move(block), offers);
    } catch (...) {
      failure = std::current_exception();
    }
    // From here on each rank may free its block, because all have opened it.
    const uint8_t answer = failure ? 0 : 1;
    const auto answers = all_gathered(answer, size, gather);
    if (failure) {
      std::rethrow_exception(failure);
    }
    for (int other = 0; other < size; ++other) {
      TORCH_CHECK(
          answers[static_cast<size_t>(other)] != 0,
          "SymmetricMemory: rendezvous() failed on rank ",
          other,
          "; see the error of that rank");
    }
    return mapping;
  }

  static std::shared_ptr<const Mapping> open(
      OcclBackend& backend,
      const std::string& name,
      std::shared_ptr<Block> block,
      const std::vector<Offer>& offers) {
    auto mapping = std::make_shared<Mapping>();
    mapping->own = block;
    mapping->pending = backend.pending();
    mapping->rank = backend.getRank();
    for (const auto each : backend.getBackendOptions()->global_ranks_in_group) {
      mapping->global_ranks.push_back(static_cast<int>(each));
    }
    std::vector<std::shared_ptr<const Process>> processes;
    std::vector<uint32_t*> pads;
    for (int other = 0; other < backend.getSize(); ++other) {
      const Offer& offer = offers[static_cast<size_t>(other)];
      void* begin = block->pointer();
      if (other == mapping->rank) {
        mapping->others.emplace_back();
        processes.emplace_back();
      } else {
        enable_access(block->device(), static_cast<int>(offer.device));
        mapping->others.push_back(
            std::make_unique<OpenBlock>(offer.handle, other));
        begin = mapping->others.back()->pointer();
        processes.push_back(Process::find(static_cast<int>(offer.process)));
      }
      mapping->buffers.push_back(begin);
      mapping->pads.push_back(offset(begin, block->pad_at()));
      pads.push_back(kernel_pointer<uint32_t>(mapping->pads.back()));
    }
    mapping->tables = std::make_unique<Buffer>(
        2 * sizeof(void*) * offers.size(), block->device());
    auto* table = kernel_pointer<void*>(mapping->tables->pointer());
    for (const auto& pointers : {mapping->buffers, mapping->pads}) {
      table = std::copy(pointers.begin(), pointers.end(), table);
    }
    mapping->signals = std::make_unique<Signals>(
        std::move(pads),
        block->pad_size() / sizeof(uint32_t),
        std::move(processes),
        mapping->pending,
        mapping->rank,
        name);
    return mapping;
  }

  /// Enables peer access between devices.
  static void enable_access(int device, int peer) {
    if (device == peer) {
      return;
    }
    const c10::DeviceGuard guard(device_of(device));
    const orError_t error = orDeviceEnablePeerAccess(peer, 0);
    if (error != orErrorPeerAccessAlreadyEnabled) {
      check(error);
    }
  }

  std::mutex mutex_;
  Blocks blocks_; // by address
};

} // namespace

void register_symmetric_memory() {
  static const bool registered = [] {
    auto allocator = c10::make_intrusive<Allocator>();
    symmetric::register_availability(allocator->name(), allocator);
    symmetric::register_allocator(device_type(), std::move(allocator));
    return true;
  }();
  static_cast<void>(registered);
}

} // namespace openreg::distributed
