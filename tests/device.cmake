headrace_test(sidecar/device/device DEPS headrace::sidecar_device)
foreach(part CUDA NCCL)
  target_compile_definitions(sidecar_device_device_test PRIVATE HEADRACE_HAVE_${part}=$<BOOL:${HEADRACE_HAVE_${part}}>)
endforeach()
if(HEADRACE_HAVE_NCCL)
  add_dependencies(sidecar_device_device_test headrace_nccl)
endif()

# A driver of our own, for tests: HEADRACE_LIBCUDA names it.
add_library(fake_cuda SHARED fakes/fake_cuda.cc fakes/fake_cuda_memory.cc)
target_include_directories(fake_cuda PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(fake_cuda PRIVATE Threads::Threads)
headrace_test(common/gpu/driver DEPS headrace::common_gpu fake_cuda)
headrace_test(fakes/fake_cuda DEPS headrace::common_gpu fake_cuda LABELS "unit;tsan")
headrace_test(common/gpu/shared_memory DEPS headrace::common_gpu fake_cuda)
headrace_test(common/gpu/handover DEPS headrace::common_gpu fake_cuda LABELS "unit;tsan")
headrace_test(sidecar/device/device_ring DEPS headrace::sidecar_device_ring fake_cuda LABELS "unit;tsan")
set_tests_properties(common/gpu/driver common/gpu/handover common/gpu/shared_memory fakes/fake_cuda
                     sidecar/device/device_ring PROPERTIES
  ENVIRONMENT "HEADRACE_LIBCUDA=$<TARGET_FILE:fake_cuda>")

# Loaders that fill GPU memory, and trainers, in processes of their own.
add_executable(device_trainer loader/device_trainer.cc)
target_link_libraries(device_trainer PRIVATE headrace::client fake_cuda)
set_target_properties(device_trainer PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
foreach(name device device_kills)
  headrace_test(loader/${name} DEPS headrace::client headrace::common_spec fake_cuda LABELS "unit;tsan")
  add_dependencies(loader_${name}_test headrace-loader device_trainer)
  set_tests_properties(loader/${name} PROPERTIES ENVIRONMENT "HEADRACE_LIBCUDA=$<TARGET_FILE:fake_cuda>")
endforeach()
