// SPDX-License-Identifier: BSD-3-Clause
// Buffer: device memory, of this process or another.
#include "bindings/memory.h"

#include <nanobind/stl/string.h>

#include <cstring>

namespace openreg::python {
namespace {

using namespace nb::literals;

class Buffer {
 public:
  Buffer(std::size_t size_, int device_)
      : size(size_), device(device_), resets_(resets_of(device_)) {
    const DeviceScope scope(device);
    check(without_gil([&] { return orMalloc(&block_, size); }));
  }
  /// Opens a block of another process.
  explicit Buffer(const orIpcMemHandle_t& handle) : from_ipc_(true) {
    check(without_gil([&] {
      return orIpcOpenMemHandle(&block_, handle, orIpcMemLazyEnablePeerAccess);
    }));
    orPointerAttributes attributes = OPENREG_POINTER_ATTRIBUTES_INIT;
    check(orPointerGetAttributes(&attributes, block_));
    size = attributes.size;
    device = attributes.device;
    resets_ = resets_of(device);
  }
  Buffer(Buffer&& other) noexcept
      : size(other.size),
        device(other.device),
        block_(std::exchange(other.block_, nullptr)),
        resets_(other.resets_),
        from_ipc_(other.from_ipc_) {}
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() {
    if (block_ != nullptr && live()) {
      release_after_work([block = block_, close = from_ipc_] {
        return close ? orIpcCloseMemHandle(block) : orFree(block);
      });
    }
  }

  /// The device pointer; another block may be there once the device was reset.
  void* address() const {
    if (!live()) {
      const std::string text = "Buffer: device " + std::to_string(device) +
          " was reset, which ended this block of " + std::to_string(size) +
          " bytes";
      raise(orErrorInvalidValue, text.c_str());
    }
    return block_;
  }

  std::size_t size = 0; // bytes
  int device = 0;

 private:
  bool live() const noexcept {
    return resets_ == resets_of(device);
  }

  void* block_ = nullptr;
  std::uint64_t resets_ = 0;
  bool from_ipc_ = false;
};

/// One end of a copy: the memory and the object that owns it.
struct End {
  void* address;
  std::size_t size;
  nb::object owner;
  bool asynchronous; // a copy may return before it is done: no pageable memory
};

bool is_pinned(const void* address) {
  orPointerAttributes attributes = OPENREG_POINTER_ATTRIBUTES_INIT;
  check(orPointerGetAttributes(&attributes, address));
  return attributes.type == orMemoryTypeHost;
}

End end_of(nb::handle object, bool writable) {
  if (nb::isinstance<Buffer>(object)) {
    const auto& buffer = nb::cast<const Buffer&>(object);
    return {buffer.address(), buffer.size, nb::borrow(object), true};
  }
  HostView view = view_of(object, writable);
  const bool pinned = is_pinned(view.address);
  return {view.address, view.size, std::move(view.owner), pinned};
}

void copy(
    const End& to,
    const End& from,
    std::size_t size,
    const Stream* stream) {
  if (stream == nullptr) {
    check(without_gil([&] {
      return orMemcpy(to.address, from.address, size, orMemcpyDefault);
    }));
    return;
  }
  check(without_gil([&] {
    return orMemcpyAsync(
        to.address, from.address, size, orMemcpyDefault, stream->handle);
  }));
  if (to.asynchronous && from.asynchronous) {
    hold(stream->handle, nb::make_tuple(to.owner, from.owner));
  }
}

void copy_from(
    nb::handle_t<Buffer> self,
    nb::handle source,
    const Stream* stream) {
  const End from = end_of(source, false);
  copy(end_of(self, true), from, from.size, stream);
}

void copy_to(
    nb::handle_t<Buffer> self,
    nb::handle destination,
    const Stream* stream) {
  const End to = end_of(destination, true);
  copy(to, end_of(self, false), to.size, stream);
}

void fill(nb::handle_t<Buffer> self, int value, const Stream* stream) {
  if (value < 0 || value > 255) {
    const std::string text = "Buffer.fill: value is " + std::to_string(value) +
        ", expected a byte from 0 to 255";
    throw nb::value_error(text.c_str());
  }
  const auto& buffer = nb::cast<const Buffer&>(self);
  void* address = buffer.address();
  if (stream == nullptr) {
    check(without_gil([&] { return orMemset(address, value, buffer.size); }));
    return;
  }
  check(without_gil([&] {
    return orMemsetAsync(address, value, buffer.size, stream->handle);
  }));
  hold(stream->handle, nb::make_tuple(self));
}

std::uintptr_t kernel_address(const Buffer& buffer) {
  void* pointer = nullptr;
  if (void* address = buffer.address()) {
    check(orGetKernelPointer(&pointer, address));
  }
  return number_of(pointer);
}

nb::bytes ipc_handle(const Buffer& buffer) {
  orIpcMemHandle_t handle;
  check(orIpcGetMemHandle(&handle, buffer.address()));
  return nb::bytes(handle.reserved, sizeof(handle.reserved));
}

Buffer from_ipc(const nb::bytes& bytes) {
  orIpcMemHandle_t handle;
  checked_handle("Buffer.from_ipc", bytes, handle.reserved);
  return Buffer(handle);
}

int refuse_bytes(PyObject* self, Py_buffer* view, int) {
  const auto& buffer = nb::cast<const Buffer&>(nb::handle(self));
  view->obj = nullptr;
  PyErr_Format(
      PyExc_BufferError,
      "the host cannot read memory of openreg:%d; copy the %zu bytes into "
      "host memory with Buffer.copy_to()",
      buffer.device,
      buffer.size);
  return -1;
}

PyType_Slot kBufferSlots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(refuse_bytes)},
    {0, nullptr}};

} // namespace

void init_buffer(nb::module_& m) {
  nb::class_<Buffer>(
      m,
      "Buffer",
      nb::type_slots(kBufferSlots),
      "A block of device memory.\n\n"
      "The host cannot read it: copy it, or access it in a kernel. When the\n"
      "object is deleted, the block is freed after all work of its device.")
      .def(
          "__init__",
          [](Buffer* self, std::int64_t size, const DeviceLike& device) {
            new (self)
                Buffer(checked_size("Buffer: size", size), index_of(device));
          },
          "size"_a,
          "device"_a = nb::none(),
          "Allocates device memory with undefined contents.\n\n"
          "Args:\n"
          "    size: Its size in bytes.\n"
          "    device: Its device, by default the current one.\n\n"
          "Raises:\n"
          "    OpenRegError: If the device is out of memory.")
      .def_ro("size", &Buffer::size, "Its size in bytes.")
      .def_prop_ro(
          "device",
          [](const Buffer& self) { return Device{self.device}; },
          "The device of the buffer.")
      .def_prop_ro(
          "address",
          [](const Buffer& self) { return number_of(self.address()); },
          "The device pointer. Dereferencing it on the host faults.")
      .def_prop_ro(
          "kernel_address", &kernel_address, "The address for kernels.")
      .def(
          "copy_from",
          &copy_from,
          "source"_a,
          "stream"_a = nb::none(),
          nb::sig(
              "def copy_from(self, source: Buffer | collections.abc.Buffer,"
              " stream: Stream | None = None) -> None"),
          "Copies all bytes of ``source`` to the start of this buffer.\n\n"
          "Args:\n"
          "    source: A Buffer of any device, or contiguous host memory.\n"
          "    stream: The stream to enqueue the copy on. The call then does\n"
          "        not block if ``source`` is a Buffer or pinned. By default\n"
          "        it waits for the copy.\n\n"
          "Raises:\n"
          "    OpenRegError: If ``source`` is larger than this buffer.")
      .def(
          "copy_to",
          &copy_to,
          "destination"_a,
          "stream"_a = nb::none(),
          nb::sig(
              "def copy_to(self, destination: Buffer | collections.abc.Buffer,"
              " stream: Stream | None = None) -> None"),
          "Fills ``destination`` with bytes from the start of this buffer.\n\n"
          "Args:\n"
          "    destination: A Buffer of any device, or contiguous and "
          "writable\n"
          "        host memory.\n"
          "    stream: The stream to enqueue the copy on. The call then does\n"
          "        not block if ``destination`` is a Buffer or pinned. By\n"
          "        default it waits for the copy.\n\n"
          "Raises:\n"
          "    OpenRegError: If ``destination`` is larger than this buffer.")
      .def(
          "fill",
          &fill,
          "value"_a,
          "stream"_a = nb::none(),
          nb::sig(
              "def fill(self, value: int, stream: Stream | None = None)"
              " -> None"),
          "Sets every byte.\n\n"
          "Args:\n"
          "    value: The byte, 0 to 255.\n"
          "    stream: The stream to enqueue the call on, without blocking.\n"
          "        By default the call waits.")
      .def(
          "ipc_handle",
          &ipc_handle,
          "Returns a handle with which another process opens the block.\n\n"
          "The process must run on this machine as the same user. The block\n"
          "still belongs to this object and is freed with it.\n\n"
          "Returns:\n"
          "    64 bytes for ``Buffer.from_ipc``.\n\n"
          "Raises:\n"
          "    OpenRegError: If the device has failed.")
      .def_static(
          "from_ipc",
          &from_ipc,
          "handle"_a,
          "Opens a block of another process.\n\n"
          "The result is on the device of the same number. Deleting it\n"
          "closes the block and does not free it.\n\n"
          "Args:\n"
          "    handle: 64 bytes from ``ipc_handle`` in that process.\n\n"
          "Raises:\n"
          "    ValueError: If the handle has a different length.\n"
          "    OpenRegError: If the block was freed, its process has ended,\n"
          "        or the handle was created in this process.")
      .def("__repr__", [](const Buffer& self) {
        return "Buffer(size=" + std::to_string(self.size) +
            ", device=" + std::to_string(self.device) + ")";
      });
}

} // namespace openreg::python
