// SPDX-License-Identifier: BSD-3-Clause
// One call of an operator, as the call path (submit.h) sees it.
//
// Boxed, typed and structured kernels get their arguments and give their
// results in different forms. Each form is a subclass; submit.cpp
// does with a call what pace.h decides.
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
  /// The path that counts the call if it runs inline.
  DispatchPath path() const {
    return path_;
  }

  /// Adds the arguments to a key.
  virtual void add_to(CallKey& key) const {
    key.refuse();
  }
  /// The arguments, as the caller gave them. Not asked of calls that add none
  /// to a key.
  virtual torch::jit::Stack arguments() const {
    TORCH_INTERNAL_ASSERT(false, op_.operator_name(), " has no key");
  }
  /// The operator whose CPU kernel runs.
  virtual const c10::OperatorHandle& target() const {
    return op_;
  }

  /// The key whose kernel of target() runs.
  virtual c10::DispatchKey key() const {
    return c10::DispatchKey::CPU;
  }

  /// Arguments for the CPU's kernel, which submit() enqueues. Not asked of
  /// calls that are never enqueued.
  virtual torch::jit::Stack alias_for_later() {
    TORCH_INTERNAL_ASSERT(false, op_.operator_name(), " cannot be enqueued");
  }
  /// Takes the results that an enqueued kernel will fill.
  virtual void take(std::vector<at::Tensor>&& /*made*/) {}

  /// Prepares the arguments for run(), unless the host reads them itself.
  virtual void alias() {}
  /// Runs the CPU's kernel.
  virtual void run() = 0;
  /// The same, done elsewhere with what alias_for_later() gave: takes what the
  /// kernel returned.
  virtual void receive(torch::jit::Stack&& /*results*/) {
    TORCH_INTERNAL_ASSERT(false, op_.operator_name(), " runs on the host");
  }
  /// Whether made() are there before run(), which fills them.
  virtual bool makes_first() const {
    return false;
  }
  /// Makes what run() made the device's.
  virtual void adopt() {}
  /// The new tensors among the results, once they are there.
  virtual std::vector<at::Tensor> made() const {
    return {};
  }

  /// The results that are arguments.
  virtual std::vector<at::Tensor> written() const {
    return {};
  }

  /// The aliases of the arguments; a call that needs none has none.
  CpuAliases& aliases() {
    return aliases_ ? *aliases_ : aliases_.emplace(op_, device_);
  }
  /// Gives written arguments the metadata that run() gave their aliases, and
  /// the aliases back; returns whether there was any, or null if an enqueued
  /// call may do otherwise.
  std::optional<bool> finish() {
    if (!aliases_) {
      adopt();
      return false;
    }
    const bool changed = aliases_->write_back();
    adopt();
    const bool may_differ = aliases_->has_changed_bits() ||
        (info_.resizes_in_its_own_way && aliases_->has_resized_elements());
    aliases_.reset();
    return may_differ ? std::nullopt : std::optional(changed);
  }

  Place place = Place::kAny;
  // The kernel may raise an exception because of values, such as an index.
  bool may_raise = false;
  // It is one operator on device memory, which a message can ask for.
  bool may_be_sent = true;
  // Of all operands, if the results are there before the call runs; else null.
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
