headrace_test(common/spec/input_spec DEPS headrace::common_spec)
headrace_test(common/spec/plan DEPS headrace::common_spec)
