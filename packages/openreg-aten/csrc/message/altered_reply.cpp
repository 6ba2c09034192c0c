// SPDX-License-Identifier: BSD-3-Clause
// Sends one call as a message, and changes its reply.
#include "message/altered_reply.h"

#include "alias/cpu_aliases.h"
#include "device/activity.h"
#include "facts/operator_info.h"
#include "memory/cpu_allocator.h"
#include "message/message.h"
#include "stream/launch.h"

#include <utility>

namespace openreg::aten {

std::vector<at::Tensor> run_with_reply(
    const std::string& name,
    const std::string& overload,
    std::uint16_t key,
    const std::vector<at::Tensor>& tensors,
    const std::function<void(codec::Bytes&)>& alter) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(
      name.c_str(), overload.c_str());
  const OperatorInfo& info = info_of(op);
  const c10::DeviceIndex device = tensors.at(0).get_device();
  CpuAliases aliases(op, device);
  torch::jit::Stack stack;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    stack.emplace_back(
        aliases.alias_argument(tensors[i], info.arguments.at(i)));
  }
  codec::Bytes message;
  codec::NumberedObjects objects;
  TORCH_CHECK(
      write_call(
          message,
          op,
          static_cast<c10::DispatchKey>(key),
          device,
          stack,
          /*results=*/nullptr,
          objects),
      name,
      " cannot be encoded in a message");
  std::vector<at::Tensor> made;
  run_on_current_stream(device, [&] {
    const KernelScope scope(device);
    codec::Bytes reply;
    exchange(describe_launch("a test", /*bytes=*/0), message, reply);
    alter(reply);
    const auto results = read_described(reply, op, stack, objects);
    for (std::size_t i = 0; results && i < results->size(); ++i) {
      if (info.returned[i] < 0 && (*results)[i].isTensor()) {
        made.push_back((*results)[i].toTensor());
      }
    }
  });
  objects = {};
  stack.clear();
  aliases.write_back();
  for (at::Tensor& each : made) {
    each = aliases.adopt(std::move(each));
  }
  return made;
}

} // namespace openreg::aten
