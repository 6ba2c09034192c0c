// SPDX-License-Identifier: BSD-3-Clause
// One operator call, as submit() sees it.
//
// Boxed, typed and structured kernels receive arguments and return results in
// different forms. Each form is a subclass. submit.cpp runs or enqueues a call
// as pace.h decides.
#pragma once

#include "alias/cpu_aliases.h"
#include "call/dispatch_paths.h"
#include "facts/operator_info.h"
#include "results/output_metadata.h"
#include "stream/pace.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>
#include <vector>

namespace openreg::aten {

class Call {
 public:
  using Place = pace::Place;

  Call(
      const c10::OperatorHandle& op,
      const OperatorInfo& info,
      c10::DeviceIndex device,
      DispatchPath path)
      : op_(op), info_(info), device_(device), path_(path) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const c10::OperatorHandle& op() const {
    return op_;
  }
  const OperatorInfo& info() const {
    return info_;
  }
  c10::DeviceIndex device() const {
    return device_;
  }
  /// The path under which the call is counted if it runs inline.
  DispatchPath path() const {
    return path_;
  }

  /// Adds the arguments to a key.
  virtual void add_to(CallKey& key) const {
    key.refuse();
  }
  /// Returns the arguments as the caller passed them. Not called if add_to()
  /// refuses the key.
  virtual torch::jit::Stack arguments() const {
    TORCH_INTERNAL_ASSERT(false, op_.operator_name(), " has no key");
  }
  /// The operator whose CPU kernel runs.
  virtual const c10::OperatorHandle& target() const {
    return op_;
  }

  /// The dispatch key of the kernel of target().
  virtual c10::DispatchKey key() const {
    return c10::DispatchKey::CPU;
  }

  /// Returns the arguments of the CPU kernel that submit() enqueues. Not called
  /// for calls that are never enqueued.
  virtual torch::jit::Stack alias_for_later() {
    TORCH_INTERNAL_ASSERT(false, op_.operator_name(), " cannot be enqueued");
  }
  /// Takes the results that an enqueued kernel will write.
  virtual void take(std::vector<at::Tensor>&& /*made*/) {}

  /// Prepares the arguments for run(). Empty if the host reads them itself.
  virtual void alias() {}
  /// Runs the CPU kernel.
  virtual void run() = 0;
  /// Used instead of run() if the arguments of alias_for_later() ran elsewhere:
  /// takes the results of the kernel.
  virtual void receive(torch::jit::Stack&& /*results*/) {
    TORCH_INTERNAL_ASSERT(false, op_.operator_name(), " runs on the host");
  }
  /// Whether made() exist before run(), which writes to them.
  virtual bool allocates_first() const {
    return false;
  }
  /// Converts the results of run() to device tensors.
  virtual void adopt() {}
  /// The new tensors among the results, once they exist.
  virtual std::vector<at::Tensor> made() const {
    return {};
  }

  /// The results that are arguments.
  virtual std::vector<at::Tensor> written() const {
    return {};
  }

  /// The aliases of the arguments. A call without aliases never creates the
  /// object.
  CpuAliases& aliases() {
    return aliases_ ? *aliases_ : aliases_.emplace(op_, device_);
  }
  /// Copies metadata that run() changed to the written arguments, and releases
  /// the aliases. Returns whether any changed, or null if an enqueued call may
  /// behave differently.
  std::optional<bool> finish() {
    if (!aliases_) {
      adopt();
      return false;
    }
    const bool changed = aliases_->write_back();
    adopt();
    const bool may_differ = aliases_->has_changed_bits() ||
        (info_.skips_resize_warning && aliases_->has_resized_elements());
    aliases_.reset();
    return may_differ ? std::nullopt : std::optional(changed);
  }

  Place place = Place::kAny;
  // The kernel may throw because of values, such as an index.
  bool may_raise = false;
  // It is a single operator on device memory, so a message can request it.
  bool may_be_sent = true;
  // The size of all operands if the results exist before the call runs, else
  // null.
  std::optional<size_t> bytes_if_known;

 protected:
  ~Call() = default;

 private:
  const c10::OperatorHandle& op_;
  const OperatorInfo& info_;
  const c10::DeviceIndex device_;
  const DispatchPath path_;
  std::optional<CpuAliases> aliases_;
};

} // namespace openreg::aten
