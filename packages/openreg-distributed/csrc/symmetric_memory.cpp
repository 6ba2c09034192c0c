// SPDX-License-Identifier: BSD-3-Clause
// Ranks tell each other of their blocks through the store of the group, and
// open those of the others.
#include "symmetric_memory.h"

#include "signals.h"
#include "streams.h"

#include <c10/core/DeviceGuard.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <unistd.h>
#include <utility>

namespace openreg::distributed {
namespace {

namespace symmetric = c10d::symmetric_memory;

constexpr size_t kPadAlignment = 16; // bytes

c10::Device device_of(int index) {
  return {c10::kPrivateUse1, static_cast<c10::DeviceIndex>(index)};
}

void* offset(void* pointer, size_t bytes) {
  return static_cast<std::byte*>(pointer) + bytes;
}

template <typename Value>
Value* kernel_pointer(void* device_pointer) {
  void* pointer = nullptr;
  check(orGetKernelPointer(&pointer, device_pointer));
  return static_cast<Value*>(pointer);
}

/// Device memory of this rank: the tensor's bytes, then the signal pad.
class Block {
 public:
  Block(size_t size, int device)
      : size_(size),
        pad_at_((size + kPadAlignment - 1) / kPadAlignment * kPadAlignment),
        pad_size_(symmetric::get_signal_pad_size()),
        device_(device) {
    const c10::DeviceGuard guard(device_of(device));
    check(orMalloc(&pointer_, pad_at_ + pad_size_));
    const orError_t error = orMemset(offset(pointer_, pad_at_), 0, pad_size_);
    if (error != orSuccess) {
      static_cast<void>(orFree(pointer_));
      check(error);
    }
  }
  ~Block() {
    // The runtime may be gone already.
    if (!symmetric::is_finalizing()) {
      const orError_t error = orFree(pointer_);
      if (error != orSuccess && error != orErrorInitialization) {
        TORCH_WARN("SymmetricMemory: ", orGetErrorMessage());
      }
    }
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void* pointer() const {
    return pointer_;
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
    return device_;
  }

 private:
  void* pointer_ = nullptr;
  size_t size_;
  size_t pad_at_;
  size_t pad_size_;
  int device_;
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
        " cannot be opened, which is for processes of one user on one host: ",
        orGetErrorMessage());
  }
  ~OpenBlock() {
    if (!symmetric::is_finalizing()) {
      const orError_t error = orIpcCloseMemHandle(pointer_);
      if (error != orSuccess && error != orErrorInitialization) {
        TORCH_WARN("SymmetricMemory: ", orGetErrorMessage());
      }
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

/// What a rank tells the others of its block.
struct Offer {
  orIpcMemHandle_t handle;
  uint64_t size;
  uint64_t pad_size;
  int64_t process;
  int64_t device;
};

/// The memories of all ranks, for as long as a stream may use them.
struct Mapping {
  std::shared_ptr<Block> own;
  std::vector<std::unique_ptr<OpenBlock>> others; // null for the own rank
  std::vector<void*> buffers;
  std::vector<void*> pads;
  std::unique_ptr<Signals> signals;
};

class Memory final : public symmetric::SymmetricMemory {
 public:
  Memory(
      std::shared_ptr<const Mapping> mapping,
      size_t offset,
      int rank,
      std::vector<int> global_ranks)
      : mapping_(std::move(mapping)),
        offset_(offset),
        rank_(rank),
        global_ranks_(std::move(global_ranks)),
        tables_(
            2 * sizeof(void*) * mapping_->buffers.size(),
            mapping_->own->device()) {
    auto* table = kernel_pointer<void*>(tables_.pointer());
    for (const auto& pointers : {mapping_->buffers, mapping_->pads}) {
      table = std::copy(pointers.begin(), pointers.end(), table);
    }
  }

  std::vector<void*> get_buffer_ptrs() override {
    return mapping_->buffers;
  }
  std::vector<void*> get_signal_pad_ptrs() override {
    return mapping_->pads;
  }
  void** get_buffer_ptrs_dev() override {
    return static_cast<void**>(tables_.pointer());
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
    return rank_;
  }
  int get_world_size() override {
    return static_cast<int>(mapping_->buffers.size());
  }
  c10::Device get_device() override {
    return device_of(mapping_->own->device());
  }
  const std::vector<int>& get_rank_to_global_rank() override {
    return global_ranks_;
  }
  bool world_within_direct_access() override {
    return true;
  }

  void barrier(int channel, size_t timeout_ms) override {
    mapping_->signals->check("barrier", channel);
    enqueue([=](const Signals& signals) {
      signals.barrier(channel, Milliseconds(timeout_ms));
    });
  }
  void put_signal(int rank, int channel, size_t timeout_ms) override {
    mapping_->signals->check_rank("put_signal", rank);
    mapping_->signals->check("put_signal", channel);
    enqueue([=](const Signals& signals) {
      signals.put(rank, channel, Milliseconds(timeout_ms));
    });
  }
  void wait_signal(int rank, int channel, size_t timeout_ms) override {
    mapping_->signals->check_rank("wait_signal", rank);
    mapping_->signals->check("wait_signal", channel);
    enqueue([=](const Signals& signals) {
      signals.wait(rank, channel, Milliseconds(timeout_ms));
    });
  }

 private:
  template <typename Run>
  void enqueue(Run run) const {
    launch(
        current_stream(static_cast<c10::DeviceIndex>(mapping_->own->device())),
        [run, mapping = mapping_] { run(*mapping->signals); });
  }

  std::shared_ptr<const Mapping> mapping_;
  size_t offset_;
  int rank_;
  std::vector<int> global_ranks_;
  Block tables_; // of pointers, for kernels
};

/// Values of all ranks, by way of a store.
template <typename Value>
std::vector<Value> all_gathered(
    c10d::Store& store,
    const std::string& name,
    const Value& value,
    int rank,
    int size) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  store.set(
      c10::str(name, '/', rank),
      std::vector<uint8_t>(bytes, bytes + sizeof(Value)));
  std::vector<Value> all(static_cast<size_t>(size));
  for (int other = 0; other < size; ++other) {
    const auto found = store.get(c10::str(name, '/', other));
    TORCH_CHECK(found.size() == sizeof(Value), "SymmetricMemory: bad store");
    std::memcpy(&all[static_cast<size_t>(other)], found.data(), sizeof(Value));
  }
  return all;
}

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
        "SymmetricMemory needs device memory in the process of the rank, which "
        "OPENREG_ISOLATION=process does not give");
    auto block = std::make_shared<Block>(size, index);
    void* pointer = block->pointer();
    const std::lock_guard lock(mutex_);
    blocks_[pointer] = {std::move(block), group_name, {}};
    return pointer;
  }

  void free(void* pointer) override {
    Entry ended; // outside of the lock: it waits for the device
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
      auto& entry = at(pointer).second;
      const auto& chosen = group_name ? group_name : entry.group_name;
      TORCH_CHECK(
          chosen.has_value(),
          "SymmetricMemory: rendezvous() needs a group, since the memory was "
          "allocated for none");
      name = *chosen;
      if (const auto known = entry.meetings.find(name);
          known != entry.meetings.end()) {
        return known->second;
      }
      block = entry.block;
    }
    const auto offset = static_cast<size_t>(
        static_cast<std::byte*>(pointer) -
        static_cast<std::byte*>(block->pointer()));
    auto memory = meet(name, std::move(block), offset);
    const std::lock_guard lock(mutex_);
    at(pointer).second.meetings[name] = memory;
    return memory;
  }

  bool has_multicast_support(int /*device*/) override {
    return false;
  }
  c10::DeviceType supported_device_type() override {
    return c10::kPrivateUse1;
  }
  std::string name() override {
    return "OCCL";
  }
  bool has_allocation(void* pointer) override {
    const std::lock_guard lock(mutex_);
    return find(pointer) != blocks_.end();
  }

 private:
  using Meeting = c10::intrusive_ptr<symmetric::SymmetricMemory>;
  struct Entry {
    std::shared_ptr<Block> block;
    std::optional<std::string> group_name;
    std::map<std::string, Meeting> meetings; // by the name of the group
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

  /// All ranks of the group come here, in the same order.
  Meeting meet(
      const std::string& name,
      std::shared_ptr<Block> block,
      size_t offset_in_block) {
    const auto group = c10d::resolve_process_group(name);
    const int rank = group->getRank();
    const int size = group->getSize();
    c10d::PrefixStore store(
        c10::str("symmetric_memory/", number_of_meeting(*group)),
        group->getStore());

    Offer own{{}, block->size(), block->pad_size(), getpid(), block->device()};
    check(orIpcGetMemHandle(&own.handle, block->pointer()));
    const auto offers = all_gathered(store, "offer", own, rank, size);
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

    auto mapping = std::make_shared<Mapping>();
    mapping->own = block;
    std::vector<std::shared_ptr<const Process>> processes;
    std::vector<uint32_t*> pads;
    for (int other = 0; other < size; ++other) {
      const Offer& offer = offers[static_cast<size_t>(other)];
      void* begin = block->pointer();
      if (other == rank) {
        mapping->others.emplace_back();
        processes.emplace_back();
      } else {
        enable_access(block->device(), static_cast<int>(offer.device));
        mapping->others.push_back(
            std::make_unique<OpenBlock>(offer.handle, other));
        begin = mapping->others.back()->pointer();
        processes.push_back(Process::find(static_cast<pid_t>(offer.process)));
      }
      mapping->buffers.push_back(begin);
      mapping->pads.push_back(offset(begin, block->pad_at()));
      pads.push_back(kernel_pointer<uint32_t>(mapping->pads.back()));
    }
    mapping->signals = std::make_unique<Signals>(
        std::move(pads),
        block->pad_size() / sizeof(uint32_t),
        std::move(processes),
        rank,
        name);
    // From here on each may free its own: all have opened it.
    all_gathered(store, "opened", uint8_t{1}, rank, size);
    return c10::make_intrusive<Memory>(
        std::move(mapping), offset_in_block, rank, global_ranks(*group));
  }

  /// Kernels of one device reach the memory of another.
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

  static std::vector<int> global_ranks(c10d::ProcessGroup& group) {
    std::vector<int> ranks;
    const auto options =
        group.getBackend(c10::kPrivateUse1)->getBackendOptions();
    for (const uint64_t rank : options->global_ranks_in_group) {
      ranks.push_back(static_cast<int>(rank));
    }
    return ranks;
  }

  /// How often ranks of this group have met; another group may have its name.
  uint64_t number_of_meeting(const c10d::ProcessGroup& group) {
    const std::lock_guard lock(mutex_);
    auto& [store, count] = meetings_[group.getGroupName()];
    if (store != group.getStore()) {
      store = group.getStore();
      count = 0;
    }
    return count++;
  }

  std::mutex mutex_;
  Blocks blocks_; // by where they begin
  std::map<std::string, std::pair<c10::intrusive_ptr<c10d::Store>, uint64_t>>
      meetings_;
};

} // namespace

void register_symmetric_memory() {
  static const bool registered = [] {
    auto allocator = c10::make_intrusive<Allocator>();
    symmetric::register_availability(allocator->name(), allocator);
    symmetric::register_allocator(c10::kPrivateUse1, std::move(allocator));
    return true;
  }();
  static_cast<void>(registered);
}

} // namespace openreg::distributed
