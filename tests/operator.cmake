add_library(operator_fakes STATIC fakes/api.cc fakes/api_server.cc)
target_link_libraries(operator_fakes PUBLIC headrace::operator_kube Threads::Threads)

foreach(name work_queue controller informer client events leader webhook_certificates)
  headrace_test(operator/kube/${name} DEPS operator_fakes headrace::operator_kube LABELS "unit;tsan")
endforeach()

# Not under TSan: the HTTP library is not instrumented and reports races of its own.
headrace_test(operator/kube/transport DEPS operator_fakes headrace::operator_kube)
