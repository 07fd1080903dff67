# The CUDA Toolkit and NCCL: a system's, or fetched at pinned versions into a cache outside the checkout.
# (FindCUDAToolkit of CMake 3.25 fails on CUDA 13, hence this file.)
#
# Sets HEADRACE_HAVE_CUDA and HEADRACE_HAVE_NCCL and makes the targets headrace_cudart and headrace_nccl_library.
# headrace_cuda_object(TARGET SOURCE.cu) compiles one CUDA file into an existing target; headrace_cuda_code(TARGET SOURCE.cu
# SOURCE.cc MACRO) makes code for the driver to load, and SOURCE.cc, to which MACRO names its file, part of the target. constexpr
# functions are the GPU's, too.
#
#   -DHEADRACE_CUDA=AUTO   use what is found or can be fetched, else build without CUDA, with a message (default)
#   -DHEADRACE_CUDA=ON     fail if there is none
#   -DHEADRACE_CUDA=OFF    build without
#   -DCUDAToolkit_ROOT=DIR, -DNCCL_ROOT=DIR, or environment variables of these names: look there first
set(HEADRACE_CUDA AUTO CACHE STRING "CUDA and NCCL: AUTO, ON or OFF")
set_property(CACHE HEADRACE_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT HEADRACE_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "HEADRACE_CUDA is '${HEADRACE_CUDA}': use AUTO, ON or OFF")
endif()
# Real code for Hopper; for every GPU since Turing, code that the driver compiles when it is loaded.
set(HEADRACE_CUDA_CODE
    -gencode arch=compute_75,code=compute_75 -gencode arch=compute_90,code=sm_90)

# Looks for the toolkit's parts under the given folders and nowhere else; forgets what an earlier run found, so that a
# changed HEADRACE_CUDA or a removed toolkit is noticed.
macro(headrace_find_cuda)
  foreach(part NVCC INCLUDE CUDART NCCL_INCLUDE NCCL)
    unset(HEADRACE_CUDA_${part} CACHE)
  endforeach()
  find_program(HEADRACE_CUDA_NVCC nvcc HINTS ${ARGV} PATH_SUFFIXES bin NO_DEFAULT_PATH)
  find_path(HEADRACE_CUDA_INCLUDE cuda_runtime_api.h HINTS ${ARGV} PATH_SUFFIXES include NO_DEFAULT_PATH)
  find_library(HEADRACE_CUDA_CUDART libcudart_static.a HINTS ${ARGV}
               PATH_SUFFIXES lib64 lib lib/x86_64-linux-gnu NO_DEFAULT_PATH)
  find_path(HEADRACE_CUDA_NCCL_INCLUDE nccl.h HINTS ${HEADRACE_NCCL_ROOTS} ${ARGV} PATH_SUFFIXES include
            NO_DEFAULT_PATH)
  # By its full name, too: wheels have no other. Folder by folder, or a system's would come before that of NCCL_ROOT.
  find_library(HEADRACE_CUDA_NCCL NAMES nccl libnccl.so.2 NAMES_PER_DIR HINTS ${HEADRACE_NCCL_ROOTS} ${ARGV}
               PATH_SUFFIXES lib64 lib lib/x86_64-linux-gnu NO_DEFAULT_PATH)
  set(HEADRACE_HAVE_CUDA OFF)
  if(HEADRACE_CUDA_NVCC AND HEADRACE_CUDA_INCLUDE AND HEADRACE_CUDA_CUDART)
    set(HEADRACE_HAVE_CUDA ON)
  endif()
  set(HEADRACE_HAVE_NCCL OFF)
  if(HEADRACE_HAVE_CUDA AND HEADRACE_CUDA_NCCL_INCLUDE AND HEADRACE_CUDA_NCCL)
    set(HEADRACE_HAVE_NCCL ON)
  endif()
endmacro()

set(HEADRACE_HAVE_CUDA OFF)
set(HEADRACE_HAVE_NCCL OFF)
if(NOT HEADRACE_CUDA STREQUAL "OFF")
  set(HEADRACE_NCCL_ROOTS ${NCCL_ROOT} $ENV{NCCL_ROOT})
  headrace_find_cuda(${CUDAToolkit_ROOT} $ENV{CUDAToolkit_ROOT} $ENV{CUDA_HOME} /usr/local/cuda /usr)
  if(NOT HEADRACE_HAVE_CUDA)
    headrace_fetch_wheels(HEADRACE_CUDA_FETCHED NAME cuda SIZE "430 MB")
    if(HEADRACE_CUDA_FETCHED)
      list(APPEND HEADRACE_NCCL_ROOTS "${HEADRACE_CUDA_FETCHED}/nvidia/nccl")
      headrace_find_cuda("${HEADRACE_CUDA_FETCHED}/nvidia/cu13")
    endif()
  endif()
  if(HEADRACE_CUDA STREQUAL "ON" AND NOT HEADRACE_HAVE_NCCL)
    message(FATAL_ERROR "HEADRACE_CUDA=ON, but the CUDA Toolkit (nvcc: ${HEADRACE_CUDA_NVCC}, libcudart_static.a: "
                        "${HEADRACE_CUDA_CUDART}) or NCCL (${HEADRACE_CUDA_NCCL}) was neither found nor fetched: set "
                        "CUDAToolkit_ROOT and NCCL_ROOT, or build with HEADRACE_CUDA=OFF")
  endif()
endif()
message(STATUS "CUDA: ${HEADRACE_HAVE_CUDA} (${HEADRACE_CUDA_NVCC}), NCCL: ${HEADRACE_HAVE_NCCL} (${HEADRACE_CUDA_NCCL})")

if(HEADRACE_HAVE_CUDA)
  add_library(headrace_cudart STATIC IMPORTED)
  set_target_properties(headrace_cudart PROPERTIES
    IMPORTED_LOCATION "${HEADRACE_CUDA_CUDART}"
    INTERFACE_INCLUDE_DIRECTORIES "${HEADRACE_CUDA_INCLUDE}"
    INTERFACE_LINK_LIBRARIES "dl;rt;Threads::Threads")
endif()
if(HEADRACE_HAVE_NCCL)
  add_library(headrace_nccl_library SHARED IMPORTED)
  set_target_properties(headrace_nccl_library PROPERTIES
    IMPORTED_LOCATION "${HEADRACE_CUDA_NCCL}"
    INTERFACE_INCLUDE_DIRECTORIES "${HEADRACE_CUDA_NCCL_INCLUDE};${HEADRACE_CUDA_INCLUDE}")
endif()

set(HEADRACE_NVCC_OPTIONS -ccbin "${CMAKE_CXX_COMPILER}" -std=c++20 -O2 --expt-relaxed-constexpr ${HEADRACE_CUDA_CODE}
    -Xcompiler -fPIC,-Wall,-Wextra -Werror all-warnings -I "${CMAKE_SOURCE_DIR}")

function(headrace_cuda_object target source)
  set(name "${source}")
  set(source "${CMAKE_CURRENT_SOURCE_DIR}/${source}")
  set(object "${CMAKE_CURRENT_BINARY_DIR}/${target}.${name}.o")
  add_custom_command(
    OUTPUT "${object}"
    COMMAND "${HEADRACE_CUDA_NVCC}" ${HEADRACE_NVCC_OPTIONS} -MD -MF "${object}.d" -c "${source}" -o "${object}"
    DEPENDS "${source}" DEPFILE "${object}.d"
    COMMENT "Building CUDA object ${target}.${name}.o"
    VERBATIM)
  target_sources(${target} PRIVATE "${object}")
endfunction()

function(headrace_cuda_code target source user macro)
  set(code "${CMAKE_CURRENT_BINARY_DIR}/${source}.fatbin")
  set(source "${CMAKE_CURRENT_SOURCE_DIR}/${source}")
  add_custom_command(
    OUTPUT "${code}"
    COMMAND "${HEADRACE_CUDA_NVCC}" ${HEADRACE_NVCC_OPTIONS} -MD -MF "${code}.d" -fatbin "${source}" -o "${code}"
    DEPENDS "${source}" DEPFILE "${code}.d"
    COMMENT "Building CUDA code ${target}.${user}"
    VERBATIM)
  target_sources(${target} PRIVATE "${user}" "${code}")
  set_source_files_properties("${user}" PROPERTIES
    OBJECT_DEPENDS "${code}" COMPILE_DEFINITIONS "${macro}=\"${code}\"")
endfunction()
