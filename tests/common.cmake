headrace_test(common/ring/handshake DEPS headrace::common_ring)
headrace_test(common/ring/processes DEPS headrace::common_ring)
headrace_test(common/ring/ring DEPS headrace::common_ring)
headrace_test(common/ring/threads LABELS unit tsan DEPS headrace::common_ring)

add_executable(ring_header_fuzz fuzz/ring_header_fuzz.cc)
target_link_libraries(ring_header_fuzz PRIVATE headrace::common_ring)
add_test(NAME fuzz/ring_header COMMAND ring_header_fuzz)
set_tests_properties(fuzz/ring_header PROPERTIES LABELS unit TIMEOUT 120)
