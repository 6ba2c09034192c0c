// SPDX-License-Identifier: BSD-3-Clause
// PinnedBuffer, and the registration of other host memory.
#include "bindings/memory.h"

#include <nanobind/stl/string.h>

namespace openreg::python {
namespace {

using namespace nb::literals;

struct PinnedBuffer {
  void* address = nullptr;
  std::size_t size;

  explicit PinnedBuffer(std::size_t size_) : size(size_) {
    check(without_gil([&] { return orMallocHost(&address, size); }));
  }
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  ~PinnedBuffer() {
    if (address != nullptr) {
      release_after_work([block = address] { return orFreeHost(block); });
    }
  }
};

/// Memory of another object while it is pinned.
class HostRegistration {
 public:
  explicit HostRegistration(nb::handle memory) {
    HostView view = view_of(memory, true);
    check(orHostRegister(view.address, view.size, orHostRegisterDefault));
    address_ = view.address;
    owner_ = share(view.owner);
  }
  HostRegistration(const HostRegistration&) = delete;
  HostRegistration& operator=(const HostRegistration&) = delete;
  ~HostRegistration() {
    if (address_ != nullptr) {
      // The memory must outlive the work that uses it.
      release_after_work([address = address_, owner = std::move(owner_)] {
        return orHostUnregister(address);
      });
    }
  }

  void close() {
    if (address_ != nullptr) {
      check(without_gil([&] { return orHostUnregister(address_); }));
      address_ = nullptr;
      owner_.reset();
    }
  }

 private:
  void* address_ = nullptr;
  std::shared_ptr<void> owner_;
};

int give_bytes(PyObject* self, Py_buffer* view, int flags) {
  static char nothing = 0; // where an empty buffer points
  const auto& buffer = nb::cast<const PinnedBuffer&>(nb::handle(self));
  return PyBuffer_FillInfo(
      view,
      self,
      buffer.address != nullptr ? buffer.address : &nothing,
      static_cast<Py_ssize_t>(buffer.size),
      0,
      flags);
}

PyType_Slot kPinnedSlots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(give_bytes)},
    {0, nullptr}};

} // namespace

HostView view_of(nb::handle object, bool writable) {
  // A memoryview keeps the owner from moving or freeing the bytes.
  nb::object view = nb::steal(PyMemoryView_FromObject(object.ptr()));
  if (!view.is_valid()) {
    throw nb::python_error();
  }
  const Py_buffer* bytes = PyMemoryView_GET_BUFFER(view.ptr());
  if (PyBuffer_IsContiguous(bytes, 'C') == 0) {
    throw nb::value_error("the host memory must be C-contiguous");
  }
  if (writable && bytes->readonly != 0) {
    throw nb::type_error("the host memory must not be read-only");
  }
  return {bytes->buf, static_cast<std::size_t>(bytes->len), std::move(view)};
}

void init_host_memory(nb::module_& m) {
  nb::class_<PinnedBuffer>(
      m,
      "PinnedBuffer",
      nb::type_slots(kPinnedSlots),
      "Host memory that copies can use without waiting.\n\n"
      "It supports the buffer protocol: ``memoryview(pinned)``. When the\n"
      "object is deleted, it is freed after all work of all devices.")
      .def(
          "__init__",
          [](PinnedBuffer* self, std::int64_t size) {
            new (self) PinnedBuffer(checked_size("PinnedBuffer: size", size));
          },
          "size"_a,
          "Allocates pinned memory with undefined contents.\n\n"
          "Args:\n"
          "    size: Its size in bytes.\n\n"
          "Raises:\n"
          "    OpenRegError: If the host is out of memory.")
      .def_ro("size", &PinnedBuffer::size, "Its size in bytes.")
      .def_prop_ro(
          "address",
          [](const PinnedBuffer& self) { return number_of(self.address); },
          "The address of the first byte.")
      .def("__repr__", [](const PinnedBuffer& self) {
        return "PinnedBuffer(size=" + std::to_string(self.size) + ")";
      });

  nb::class_<HostRegistration>(
      m, "HostRegistration", "Host memory that is pinned until ``close``.")
      .def(nb::init<nb::handle>(), "memory"_a, "Pins contiguous memory.")
      .def(
          "close",
          &HostRegistration::close,
          "Unpins the memory after all work of all devices.");
}

} // namespace openreg::python
