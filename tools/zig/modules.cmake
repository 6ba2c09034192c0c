# SPDX-License-Identifier: BSD-3-Clause
# zig 0.16 crashes when it links a bundle, as Python modules of macOS are. Python
# loads a dynamic library in the same way.
foreach(language C CXX)
  string(REPLACE "-bundle" "-dynamiclib" CMAKE_SHARED_MODULE_CREATE_${language}_FLAGS
    "${CMAKE_SHARED_MODULE_CREATE_${language}_FLAGS}")
endforeach()
