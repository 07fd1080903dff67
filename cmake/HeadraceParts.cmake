# -DHEADRACE_PARTS=gpu (preset "gpu"): ring, client, device, exchange, the Python package and the loader, and their tests, and
# nothing else: for a machine with a GPU but without network. They need a C++20 compiler, CMake, CUDA 13.0 or newer and NCCL,
# and three libraries that such machines lack: nlohmann-json, GoogleTest and, for the Python package, nanobind. These are
# the system's where it has them, else those of build/gpu-deps, which `make gpu-deps` fills on a machine that has them, to
# be carried along (docs/gpu.md). The loader is the same without what needs further libraries (sidecar/CMakeLists.txt).
set(HEADRACE_PARTS all CACHE STRING "What to build: all, or gpu: what needs a GPU, alone")
set_property(CACHE HEADRACE_PARTS PROPERTY STRINGS all gpu)
if(NOT HEADRACE_PARTS MATCHES "^(all|gpu)$")
  message(FATAL_ERROR "HEADRACE_PARTS is '${HEADRACE_PARTS}': use all or gpu")
endif()
if(HEADRACE_PARTS STREQUAL "all")
  return()
endif()

set(HEADRACE_GPU_DEPS ${CMAKE_SOURCE_DIR}/build/gpu-deps)
set(carry "not on this machine, nor in ${HEADRACE_GPU_DEPS}: run `make gpu-deps` where Headrace is built and carry "
          "that folder here")

find_package(Threads REQUIRED)
find_package(nlohmann_json QUIET)
if(NOT nlohmann_json_FOUND)
  if(NOT EXISTS ${HEADRACE_GPU_DEPS}/include/nlohmann/json.hpp)
    message(FATAL_ERROR "nlohmann-json is " ${carry})
  endif()
  include_directories(SYSTEM ${HEADRACE_GPU_DEPS}/include)
endif()

find_package(GTest QUIET)
if(NOT TARGET GTest::gmock_main)
  set(sources ${HEADRACE_GPU_DEPS}/googletest)
  if(NOT EXISTS ${sources}/googlemock/src/gmock_main.cc)
    message(FATAL_ERROR "GoogleTest is " ${carry})
  endif()
  add_library(gtest STATIC ${sources}/googletest/src/gtest-all.cc ${sources}/googlemock/src/gmock-all.cc)
  target_include_directories(gtest SYSTEM PUBLIC ${sources}/googletest/include ${sources}/googlemock/include
                             PRIVATE ${sources}/googletest ${sources}/googlemock)
  target_compile_features(gtest PUBLIC cxx_std_20)
  target_link_libraries(gtest PUBLIC Threads::Threads)
  add_library(gmock_main STATIC ${sources}/googlemock/src/gmock_main.cc)
  target_link_libraries(gmock_main PUBLIC gtest)
  add_library(GTest::gtest ALIAS gtest)
  add_library(GTest::gmock_main ALIAS gmock_main)
endif()
message(STATUS "Parts: gpu; nlohmann-json: ${nlohmann_json_FOUND} (else carried), GoogleTest: ${GTest_FOUND} (else carried)")
