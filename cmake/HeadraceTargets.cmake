# headrace_library(NAME common_base SRCS status.cc log.cc DEPS ... )
# Includes are written from the repository root. The alias is headrace::common_base.
function(headrace_library)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${ARG_NAME} STATIC ${ARG_SRCS})
  add_library(headrace::${ARG_NAME} ALIAS ${ARG_NAME})
  target_include_directories(${ARG_NAME} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(${ARG_NAME} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
endfunction()

# headrace_binary(NAME headrace-loader SRCS main.cc DEPS ...): lands in <build>/bin.
function(headrace_binary)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SRCS})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} Threads::Threads)
endfunction()

# headrace_test(sidecar/source/tfrecord DEPS ...): compiles tests/sidecar/source/tfrecord_test.cc with GoogleTest's main
# and registers it with ctest under that name, label "unit" (or LABELS). The test runs in the repository's root.
function(headrace_test path)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS;LABELS" ${ARGN})
  string(REPLACE "/" "_" target "${path}_test")
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  add_executable(${target} ${CMAKE_SOURCE_DIR}/tests/${path}_test.cc ${ARG_SRCS})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE ${ARG_DEPS} GTest::gmock_main GTest::gtest Threads::Threads)
  # Relative, so that clones share compiled tests; ctest runs them from the root.
  file(RELATIVE_PATH bin_dir ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/bin)
  target_compile_definitions(${target} PRIVATE HEADRACE_SOURCE_DIR="." HEADRACE_BIN_DIR="${bin_dir}")
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${path} COMMAND ${target} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${path} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 120)
endfunction()

# A fuzz target, tests/fuzz/NAME_fuzz.cc. With libFuzzer (preset "fuzz") it searches for as long as it is told; elsewhere
# ctest runs changed seeds of it.
function(headrace_fuzz name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  set(target ${name}_fuzz)
  if(HEADRACE_LIBFUZZER)
    add_executable(${target} fuzz/${target}.cc fuzz/libfuzzer.cc)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${target} fuzz/${target}.cc fuzz/mutations.cc)
    add_test(NAME fuzz/${name} COMMAND ${target})
    set_tests_properties(fuzz/${name} PROPERTIES LABELS unit TIMEOUT 120)
  endif()
  target_link_libraries(${target} PRIVATE ${ARG_DEPS})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  set_property(GLOBAL APPEND PROPERTY HEADRACE_FUZZ_TARGETS ${target})
endfunction()
