# Run by hand or by `make bench`, never by ctest.
foreach(name client_next_bench loader_drain_bench machine_floors operator_bench)
  add_executable(${name} EXCLUDE_FROM_ALL bench/${name}.cc)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
endforeach()
target_link_libraries(client_next_bench PRIVATE headrace::client fakes_fake_loader)
target_link_libraries(loader_drain_bench PRIVATE headrace::client)
target_link_libraries(operator_bench PRIVATE operator_fakes headrace::operator_lib headrace::operator_reconcile headrace::operator_admission)
target_link_libraries(machine_floors PRIVATE ${ISAL} Threads::Threads)
