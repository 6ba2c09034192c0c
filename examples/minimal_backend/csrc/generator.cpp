// SPDX-License-Identifier: BSD-3-Clause
// Random numbers from a seed and an offset, as in a GPU's Philox generator.
#include "generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <array>
#include <cstring>

#include "runtime.h"

namespace torch_minimal {
namespace {

// [docs: generator]
class Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(c10::DeviceIndex device)
      : GeneratorImpl({c10::kPrivateUse1, device},
                      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}
  static c10::DeviceType device_type() { return c10::kPrivateUse1; }

  void set_current_seed(uint64_t seed) override { state_ = {seed, 0}; }
  uint64_t current_seed() const override { return state_[0]; }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return current_seed();
  }
  void set_offset(uint64_t offset) override { state_[1] = offset; }
  uint64_t get_offset() const override { return state_[1]; }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    at::Tensor made = at::empty({sizeof(state_)}, at::kByte);
    std::memcpy(made.mutable_data_ptr(), state_.data(), sizeof(state_));
    return made.getIntrusivePtr();
  }
  void set_state(const c10::TensorImpl& state) override {
    TORCH_CHECK(state.device_type() == at::kCPU && state.dtype() == at::kByte &&
                    state.is_contiguous() && state.numel() == sizeof(state_),
                "expected the state as a contiguous CPU tensor of ", sizeof(state_), " bytes");
    std::memcpy(state_.data(), state.data(), sizeof(state_));
  }

  /// Returns 32 random bits and advances the offset by 4, the size of a Philox block.
  uint32_t draw() {
    const std::lock_guard lock(mutex_);
    at::Philox4_32 engine(state_[0], /*subsequence=*/0, state_[1] / 4);
    state_[1] += 4;
    return engine();
  }

 private:
  Generator* clone_impl() const override {
    auto* made = new Generator(device().index());
    made->state_ = state_;
    return made;
  }
  std::array<uint64_t, 2> state_{c10::default_rng_seed_val, 0}; // seed, offset
};
// [docs: end]

// [docs: dropout]
/// Needed because PyTorch's CPU kernel draws from the default CPU generator.
std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double p,
                                                  std::optional<bool> train) {
  const double kept = train.value_or(true) ? 1 - p : 1;
  const at::Tensor mask = at::empty_like(input, at::kBool).bernoulli_(kept);
  return {input.mul(mask).mul(kept > 0 ? 1 / kept : 0), mask};
}
// [docs: end]

} // namespace

// [docs: generators]
const at::Generator& default_generator(c10::DeviceIndex device) {
  static const auto& all = *[] {
    auto* made = new std::vector<at::Generator>;
    for (c10::DeviceIndex i = 0; i < device_count(); ++i) made->push_back(new_generator(i));
    return made;
  }();
  return all.at(device == -1 ? current_device() : device);
}

at::Generator new_generator(c10::DeviceIndex device) {
  if (device == -1) device = current_device();
  TORCH_CHECK(device < device_count(), "there is no device ", static_cast<int>(device));
  return at::make_generator<Generator>(device);
}

void replace_generators(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  const auto values = torch::jit::last(*stack, arguments.size());
  std::optional<c10::Device> device; // the first tensor's device
  for (const c10::IValue& value : values) {
    if (!device && value.isTensor()) device = value.toTensor().device();
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name() != "generator") continue;
    const bool given = values[i].isGenerator();
    TORCH_CHECK(!given || !device || device->is_privateuseone(), "the generator is on ",
                values[i].toGenerator().device(), ", but the tensor is on ", *device);
    at::Generator generator =
        given ? values[i].toGenerator() : default_generator(device ? device->index() : -1);
    const uint32_t seed = at::check_generator<Generator>(generator)->draw();
    auto host = at::make_generator<at::CPUGeneratorImpl>(seed);
    (*stack)[stack->size() - arguments.size() + i] = std::move(host);
  }
}
// [docs: end]

// [docs: generator-registration]
TORCH_LIBRARY_FRAGMENT(minimal, m) {
  m.def("default_generator(int device) -> Generator?",
        [](int64_t device) { return default_generator(static_cast<c10::DeviceIndex>(device)); });
}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("native_dropout", native_dropout);
}
// [docs: end]

} // namespace torch_minimal
