# SPDX-License-Identifier: BSD-3-Clause
# Finds the torch of the Python that find_package(Python) found. Sets
#   Torch_VERSION         public version, such as 2.13.0
#   TORCH_INSTALL_PREFIX  folder of the package
#   Torch::torch          the C++ library
#   Torch::python         the C++ library and its Python binding
#
# torch's own CMake package requires a CUDA toolkit if torch was built for CUDA, as the
# torch on PyPI is. A PrivateUse1 backend needs only the headers and four libraries.
execute_process(
  COMMAND "${Python_EXECUTABLE}" -c [=[
import site, sys
from importlib import metadata, util
# An isolated build of pip hides the packages of its environment.
sys.path += [*site.getsitepackages(), site.getusersitepackages()]
print(metadata.version("torch").partition("+")[0])
print(util.find_spec("torch").submodule_search_locations[0], end="")
]=]
  OUTPUT_VARIABLE torch_found
  ERROR_QUIET
)
string(REPLACE "\n" ";" torch_found "${torch_found}")
list(LENGTH torch_found torch_found_length)
if(torch_found_length EQUAL 2)
  list(GET torch_found 0 Torch_VERSION)
  list(GET torch_found 1 TORCH_INSTALL_PREFIX)
endif()

foreach(name IN ITEMS torch torch_cpu c10 torch_python)
  find_library(Torch_${name}_LIBRARY ${name}
    PATHS "${TORCH_INSTALL_PREFIX}/lib" NO_DEFAULT_PATH NO_CACHE)
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Torch
  REQUIRED_VARS
    TORCH_INSTALL_PREFIX Torch_torch_LIBRARY Torch_torch_cpu_LIBRARY
    Torch_c10_LIBRARY Torch_torch_python_LIBRARY
  VERSION_VAR Torch_VERSION
  HANDLE_VERSION_RANGE
  REASON_FAILURE_MESSAGE
    "Install a supported torch first, and add --no-build-isolation if your tool builds in an environment of its own"
)

if(Torch_FOUND AND NOT TARGET Torch::torch)
  add_library(Torch::torch INTERFACE IMPORTED)
  target_include_directories(Torch::torch INTERFACE
    "${TORCH_INSTALL_PREFIX}/include"
    "${TORCH_INSTALL_PREFIX}/include/torch/csrc/api/include"
  )
  target_link_libraries(Torch::torch INTERFACE
    "${Torch_torch_LIBRARY}" "${Torch_torch_cpu_LIBRARY}" "${Torch_c10_LIBRARY}"
  )
  add_library(Torch::python INTERFACE IMPORTED)
  target_link_libraries(Torch::python INTERFACE
    Torch::torch "${Torch_torch_python_LIBRARY}"
  )
endif()
