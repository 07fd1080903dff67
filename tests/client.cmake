add_library(fakes_fake_loader STATIC fakes/fake_loader.cc)
target_link_libraries(fakes_fake_loader PUBLIC headrace::common_ring Threads::Threads)
add_executable(ring_loader fakes/ring_loader.cc)
target_link_libraries(ring_loader PRIVATE fakes_fake_loader)
set_target_properties(ring_loader PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)

headrace_test(client/client DEPS headrace::client fakes_fake_loader)
target_compile_definitions(client_client_test PRIVATE HEADRACE_RING_LOADER="$<TARGET_FILE:ring_loader>")
add_dependencies(client_client_test ring_loader)
headrace_test(client/threads DEPS headrace::client fakes_fake_loader)
headrace_test(client/variable DEPS headrace::client fakes_fake_loader)

# With GPU memory, against the stand-in driver of device.cmake.
add_executable(pinned_trainer fakes/pinned_trainer.cc)
target_link_libraries(pinned_trainer PRIVATE headrace::client fake_cuda)
set_target_properties(pinned_trainer PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
headrace_test(client/destination DEPS headrace::client)
headrace_test(client/device_buffers DEPS headrace::client fake_cuda LABELS "unit;tsan")
headrace_test(client/pinned DEPS headrace::client fakes_fake_loader fake_cuda LABELS "unit;tsan")
headrace_test(client/pinned_lifetime DEPS headrace::client fakes_fake_loader fake_cuda LABELS "unit;tsan")
target_compile_definitions(client_pinned_lifetime_test PRIVATE HEADRACE_PINNED_TRAINER="$<TARGET_FILE:pinned_trainer>")
add_dependencies(client_pinned_lifetime_test pinned_trainer)
set_tests_properties(client/device_buffers client/pinned client/pinned_lifetime PROPERTIES
  ENVIRONMENT "HEADRACE_LIBCUDA=$<TARGET_FILE:fake_cuda>")

headrace_test(client/gpu DEPS headrace::client fakes_fake_loader LABELS "unit;gpu")  # skipped without a GPU

# Compiled as C, against the shared library.
add_executable(client_c_abi_test client/c_abi_test.c)
set_target_properties(client_c_abi_test PROPERTIES
  C_STANDARD 99 RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_link_libraries(client_c_abi_test PRIVATE headrace_shared)
add_dependencies(client_c_abi_test ring_loader)
add_test(NAME client/c_abi COMMAND sh -c
  "d=$(mktemp -d) && '$<TARGET_FILE:client_c_abi_test>' '$<TARGET_FILE:ring_loader>' \"$d\"; s=$?; rm -rf \"$d\"; exit $s")
set_tests_properties(client/c_abi PROPERTIES LABELS unit TIMEOUT 60)

if(TARGET headrace_python_native)
  add_test(NAME client/python COMMAND ${HEADRACE_PYTHON_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/client/python_test.py)
  add_test(NAME client/ragged COMMAND ${HEADRACE_PYTHON_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/client/ragged_test.py)
  add_test(NAME client/pinned_python
    COMMAND ${HEADRACE_PYTHON_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/client/pinned_test.py)
  set(python_tests client/python client/ragged client/pinned_python)
  # As users have it, and so only where scripts/test.py makes a wheel: not on a GPU machine.
  if(HEADRACE_PARTS STREQUAL "all")
    add_test(NAME client/wheel COMMAND ${HEADRACE_PYTHON_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/client/wheel_test.py)
    list(APPEND python_tests client/wheel)
    set_property(TEST client/wheel PROPERTY ENVIRONMENT_MODIFICATION
      "HEADRACE_PYTHON_PACKAGE=set:${CMAKE_SOURCE_DIR}/client/python"
      "HEADRACE_WHEEL_DIRECTORY=set:${CMAKE_SOURCE_DIR}/dist"
      "HEADRACE_LIBCUDA=set:no driver")
  endif()
  set_tests_properties(${python_tests} PROPERTIES LABELS "unit;python" TIMEOUT 120)
  set_property(TEST ${python_tests} PROPERTY ENVIRONMENT
    "PYTHONPATH=${CMAKE_BINARY_DIR}/python;PYTHONDONTWRITEBYTECODE=1"
    "HEADRACE_RING_LOADER=$<TARGET_FILE:ring_loader>"
    "HEADRACE_CLIENT_DOC=${CMAKE_SOURCE_DIR}/docs/client.md"
    "HEADRACE_INCLUDE_DIR=${CMAKE_SOURCE_DIR}/client/include"
    "HEADRACE_LIBRARY_DIR=$<TARGET_FILE_DIR:headrace_shared>")
  # Where tensors lie must not depend on the machine.
  set_property(TEST client/python client/ragged APPEND PROPERTY ENVIRONMENT "HEADRACE_LIBCUDA=no driver")
  set_property(TEST client/pinned_python APPEND PROPERTY ENVIRONMENT "HEADRACE_LIBCUDA=$<TARGET_FILE:fake_cuda>")
endif()
