// SPDX-License-Identifier: BSD-3-Clause
// Waits for a collective: streams wait, and the host only on request.
#include "occl/work.h"

#include <c10/util/Exception.h>

#include <gil_release.h>
#include <stdexcept>
#include <utility>

namespace openreg::distributed {

void Outcome::finish(
    std::exception_ptr failure,
    int source_rank,
    bool is_abandoned) {
  {
    const std::lock_guard lock(mutex_);
    if (finished_) {
      return;
    }
    finished_ = true;
    failure_ = std::move(failure);
    source_rank_ = source_rank;
    is_abandoned_ = is_abandoned;
  }
  condition_.notify_all();
}

bool Outcome::is_finished() const {
  return finished_;
}

bool Outcome::is_abandoned() const {
  const std::lock_guard lock(mutex_);
  return is_abandoned_;
}

std::exception_ptr Outcome::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool Outcome::wait(std::chrono::milliseconds timeout) const {
  const GilRelease no_gil;
  std::unique_lock lock(mutex_);
  if (timeout <= kNoTimeout) {
    condition_.wait(lock, [this] { return finished_.load(); });
    return true;
  }
  return condition_.wait_for(
      lock, timeout, [this] { return finished_.load(); });
}

int Outcome::source_rank() const {
  const std::lock_guard lock(mutex_);
  return source_rank_;
}

Memory::Memory(
    const std::vector<at::Tensor>& inputs,
    const std::vector<at::Tensor>& outputs,
    std::shared_ptr<const Outcome> outcome,
    bool until_end)
    : outcome_(std::move(outcome)), until_end_(until_end) {
  for (const auto* tensors : {&inputs, &outputs}) {
    for (const at::Tensor& tensor : *tensors) {
      storages_.push_back(tensor.storage());
    }
  }
}

void Memory::give_up() {
  if (!until_end_) {
    take(); // and drops it without the lock
  } else if (outcome_->is_finished()) {
    settle();
  }
}

void Memory::settle() {
  std::vector<c10::Storage> storages = take();
  if (!storages.empty() &&
      (!outcome_->is_finished() || (until_end_ && outcome_->is_abandoned()))) {
    static_cast<void>(
        std::make_unique<std::vector<c10::Storage>>(std::move(storages))
            .release());
  }
}

std::vector<c10::Storage> Memory::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(storages_, {});
}

std::string CallName::text() const {
  return c10::str(
      name,
      " number ",
      sequence,
      " of group '",
      *group,
      "' on rank ",
      rank,
      " of ",
      size);
}

OcclWork::OcclWork(
    Issued issued,
    std::shared_ptr<Outcome> outcome,
    std::shared_ptr<Memory> memory)
    : Work(
          issued.name.rank,
          issued.type,
          issued.title.c_str(),
          std::optional<std::vector<at::Tensor>>(issued.inputs)),
      issued_(std::move(issued)),
      outcome_(std::move(outcome)),
      memory_(std::move(memory)) {
  issued_.inputs.clear();
}

void OcclWork::set_issued(
    const c10::Stream& stream,
    std::shared_ptr<CallerStreams> callers,
    const CallerStreams::Place& place) {
  callers_ = std::move(callers);
  place_ = place;
  device_ = stream.device_index();
  end_ = record_event(stream);
  make_future(stream);
  end_recording();
}

void OcclWork::set_done(c10::DeviceIndex device) {
  device_ = device;
  end_recording();
}

void OcclWork::make_future(const c10::Stream& stream) {
  future_ = c10::make_intrusive<c10::ivalue::Future>(
      c10::ListType::create(c10::TensorType::get()),
      std::vector<c10::Device>{stream.device()});
  {
    // The future records its event on the current stream.
    const StreamScope scope(stream);
    future_->markCompleted(c10::IValue(issued_.outputs));
  }
}

void OcclWork::end_recording() {
  if (recordFunctionEndCallback_) {
    recordFunctionEndCallback_();
    recordFunctionEndCallback_ = nullptr;
  }
}

bool OcclWork::isCompleted() {
  return outcome_->is_finished();
}

bool OcclWork::isSuccess() const {
  return outcome_->is_finished() && !outcome_->failure();
}

std::exception_ptr OcclWork::exception() const {
  return outcome_->failure();
}

int OcclWork::sourceRank() const {
  wait_on_host(kNoTimeout);
  const int rank = outcome_->source_rank();
  TORCH_CHECK(
      rank >= 0,
      "occl: ",
      issued_.name.text(),
      " has no source rank; only a receive from any rank has one");
  return rank;
}

std::vector<at::Tensor> OcclWork::result() {
  return issued_.outputs;
}

void OcclWork::wait_on_host(std::chrono::milliseconds timeout) const {
  if (!outcome_->wait(timeout)) {
    C10_THROW_ERROR(
        DistBackendError,
        c10::str(
            // NCCL's words, for tools that search for them.
            "occl: caught collective operation timeout: ",
            issued_.name.text(),
            " was not done after ",
            timeout.count(),
            " ms; it continues"));
  }
  if (auto failure = outcome_->failure()) {
    std::rethrow_exception(failure);
  }
}

void OcclWork::synchronize() {
  if (end_) {
    callers_->wait(current_stream(device_), end_, place_);
  }
  memory_->give_up();
  if (outcome_->is_finished()) {
    if (auto failure = outcome_->failure()) {
      std::rethrow_exception(failure);
    }
  }
}

bool OcclWork::wait(std::chrono::milliseconds timeout) {
  if (issued_.blocks_host || timeout > kNoTimeout) {
    wait_on_host(timeout);
  }
  synchronize();
  return true;
}

void OcclWork::blockCurrentStream() {
  synchronize();
}

c10::intrusive_ptr<c10::ivalue::Future> OcclWork::getFuture() {
  const std::lock_guard lock(future_mutex_);
  if (!future_) { // it has run: an idle stream is equivalent
    const OwnStream empty(device_);
    make_future(empty.get());
  }
  return future_;
}

uint64_t OcclWork::getSequencenumber() const {
  return issued_.name.sequence;
}

} // namespace openreg::distributed
