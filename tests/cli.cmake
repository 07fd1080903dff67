headrace_test(cli/array_print DEPS headrace::cli)
headrace_test(cli/conformance DEPS headrace::cli)
headrace_test(cli/explanation DEPS headrace::cli)
headrace_test(cli/flags DEPS headrace::cli)
headrace_test(cli/injection DEPS headrace::cli)
headrace_test(cli/input_file DEPS headrace::cli)
headrace_test(cli/loader_metrics DEPS headrace::cli)
headrace_test(cli/process DEPS headrace::cli)
headrace_test(cli/scrape DEPS headrace::cli headrace::common_net)
headrace_test(cli/step_print DEPS headrace::cli)
headrace_test(cli/tensor_print DEPS headrace::cli)
headrace_test(cli/tfrecord_writer DEPS headrace::cli)
headrace_test(cli/top_print DEPS headrace::cli)
headrace_test(cli/verdict DEPS headrace::cli)
headrace_test(cli/worker_stream DEPS headrace::cli)
add_dependencies(cli_worker_stream_test headrace-loader)
headrace_test(cli/yaml DEPS headrace::cli)
headrace_test(cli/command DEPS headrace::cli)
add_dependencies(cli_command_test headrace headrace-loader)

# What TensorFlow gives, through files, loaders, rings and clients. Cases of distribute_datasets_from_function and of
# experimental_distribute_values_from_function are left out: an input cannot say them yet.
add_test(NAME conformance COMMAND headrace verify ${CMAKE_SOURCE_DIR}/tests/conformance/cases.jsonl
         --filter "^(?!fn-|error-from-function|seed-from-function|seed-values-from-function)")
set_tests_properties(conformance PROPERTIES LABELS conformance TIMEOUT 600)

find_program(PYTHON3 NAMES python3 HINTS /usr/bin NO_DEFAULT_PATH)  # Debian's, which has numpy and yaml
find_program(PYTHON3 NAMES python3 REQUIRED)
add_test(NAME examples/digits COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/examples/digits_test.py)
set_tests_properties(examples/digits PROPERTIES LABELS unit TIMEOUT 120 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
if(TARGET headrace_python_native)
  # The README's local training: two workers with two replicas each; fails below the accuracy it asks for.
  add_test(NAME examples/digits_train
    COMMAND headrace run -f ${CMAKE_SOURCE_DIR}/examples/digits/input.yaml --workers 2 -- ${PYTHON3}
            ${CMAKE_SOURCE_DIR}/examples/digits/train.py)
  set_tests_properties(examples/digits_train PROPERTIES LABELS "unit;python" TIMEOUT 120)
  # A loader that fills GPU memory, and a trainer in Python, before the stand-in driver.
  add_test(NAME client/device_python COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/client/device_test.py)
  set_tests_properties(client/device_python PROPERTIES LABELS "unit;python" TIMEOUT 300 ENVIRONMENT
    "PYTHONDONTWRITEBYTECODE=1;HEADRACE_COMMAND=$<TARGET_FILE:headrace>;HEADRACE_LIBCUDA=$<TARGET_FILE:fake_cuda>")
endif()
