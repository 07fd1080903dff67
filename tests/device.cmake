headrace_test(sidecar/device/device DEPS headrace::sidecar_device)
foreach(part CUDA NCCL)
  target_compile_definitions(sidecar_device_device_test PRIVATE HEADRACE_HAVE_${part}=$<BOOL:${HEADRACE_HAVE_${part}}>)
endforeach()
if(HEADRACE_HAVE_NCCL)
  add_dependencies(sidecar_device_device_test headrace_nccl)
endif()

# The image kernel: its arithmetic on the CPU, and itself where there is a GPU.
headrace_test(sidecar/device/image_tile DEPS headrace::sidecar)
if(HEADRACE_HAVE_CUDA)
  headrace_test(sidecar/device/image_kernel DEPS headrace::sidecar headrace::sidecar_device headrace_cudart
                LABELS "unit;gpu")  # skipped without a GPU
endif()

# A driver of our own, for tests: HEADRACE_LIBCUDA names it.
add_library(fake_cuda SHARED fakes/fake_cuda.cc)
target_include_directories(fake_cuda PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(fake_cuda PRIVATE Threads::Threads)
headrace_test(common/gpu/driver DEPS headrace::common_gpu fake_cuda)
headrace_test(fakes/fake_cuda DEPS headrace::common_gpu fake_cuda LABELS "unit;tsan")
set_tests_properties(common/gpu/driver fakes/fake_cuda PROPERTIES
  ENVIRONMENT "HEADRACE_LIBCUDA=$<TARGET_FILE:fake_cuda>")
