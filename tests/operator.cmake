add_library(operator_fakes STATIC fakes/api.cc fakes/api_server.cc)
target_link_libraries(operator_fakes PUBLIC headrace::operator_kube Threads::Threads)

foreach(name work_queue controller informer client events leader path_access watch_line webhook_certificates)
  headrace_test(operator/kube/${name} DEPS operator_fakes headrace::operator_kube LABELS "unit;tsan")
endforeach()

foreach(name config probe watches)
  headrace_test(operator/${name} DEPS operator_fakes headrace::operator_lib)
endforeach()

# Not under TSan: the HTTP library is not instrumented and reports races of its own.
headrace_test(operator/kube/transport DEPS operator_fakes headrace::operator_kube)
# libcrypto has no frame pointers: only the slow unwinder sees which of its functions kept something.
set_property(TEST operator/kube/transport PROPERTY ENVIRONMENT
  ASAN_OPTIONS=fast_unwind_on_malloc=0 LSAN_OPTIONS=suppressions=tests/operator/kube/transport_lsan.supp)

# Text cases: cases/*.yaml beside the tests.
find_package(yaml-cpp REQUIRED)
add_library(yaml_case STATIC operator/yaml_case.cc)
target_include_directories(yaml_case PUBLIC ${CMAKE_SOURCE_DIR})
target_link_libraries(yaml_case PRIVATE yaml-cpp)
headrace_test(operator/reconcile/reconcile_cases DEPS yaml_case headrace::operator_reconcile headrace::common_net)
headrace_test(operator/reconcile/crowd DEPS headrace::operator_reconcile headrace::common_net)
headrace_test(operator/reconcile/own_writes DEPS headrace::operator_reconcile)
headrace_test(operator/admission/inject_cases DEPS yaml_case headrace::operator_admission)
headrace_test(operator/admission/loader_resources DEPS headrace::operator_inject)
headrace_test(operator/admission/review_shape DEPS headrace::operator_admission)
headrace_test(operator/admission/server DEPS headrace::operator_admission)
headrace_test(operator/pod/injected DEPS headrace::operator_pod)
headrace_test(operator/admission/workload DEPS headrace::operator_inject)
headrace_test(crds/schema DEPS yaml_case headrace::common_spec)

# `make fuzz-admission` sends a million; a run's worth of seconds here, in the memory that the sanitizers take.
add_executable(admission_flood flood/admission_flood.cc flood/hostile_requests.cc flood/peer.cc)
target_link_libraries(admission_flood PRIVATE headrace::operator_lib headrace::operator_admission headrace::common_net OpenSSL::SSL Threads::Threads)
set_target_properties(admission_flood PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
add_test(NAME operator/admission/flood COMMAND admission_flood 4000 1500)
set_tests_properties(operator/admission/flood PROPERTIES LABELS unit TIMEOUT 300)
