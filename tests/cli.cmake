headrace_test(cli/array_print DEPS headrace::cli)
headrace_test(cli/conformance DEPS headrace::cli)
headrace_test(cli/explanation DEPS headrace::cli)
headrace_test(cli/flags DEPS headrace::cli)
headrace_test(cli/injection DEPS headrace::cli)
headrace_test(cli/input_file DEPS headrace::cli)
headrace_test(cli/process DEPS headrace::cli)
headrace_test(cli/step_print DEPS headrace::cli)
headrace_test(cli/tfrecord_writer DEPS headrace::cli)
headrace_test(cli/yaml DEPS headrace::cli)
headrace_test(cli/command DEPS headrace::cli)
add_dependencies(cli_command_test headrace headrace-loader)

# What TensorFlow gives, through files, loaders, rings and clients. Cases of distribute_datasets_from_function and of
# experimental_distribute_values_from_function are left out: an input cannot say them yet.
add_test(NAME conformance COMMAND headrace verify ${CMAKE_SOURCE_DIR}/tests/conformance/cases.jsonl
         --filter "^(?!fn-|error-from-function|seed-from-function|seed-values-from-function)")
set_tests_properties(conformance PROPERTIES LABELS conformance TIMEOUT 600)
