headrace_test(sidecar/device/device DEPS headrace::sidecar_device)
foreach(part CUDA NCCL)
  target_compile_definitions(sidecar_device_device_test PRIVATE HEADRACE_HAVE_${part}=$<BOOL:${HEADRACE_HAVE_${part}}>)
endforeach()
if(HEADRACE_HAVE_NCCL)
  add_dependencies(sidecar_device_device_test headrace_nccl)
endif()

# A driver of our own, for tests: HEADRACE_LIBCUDA names it.
add_library(fake_cuda SHARED fakes/fake_cuda.cc)
target_include_directories(fake_cuda PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(fake_cuda PRIVATE Threads::Threads)
# An NCCL of our own, for tests: HEADRACE_LIBNCCL names it.
if(HEADRACE_HAVE_NCCL)
  add_library(fake_nccl SHARED fakes/fake_nccl.cc)
  target_include_directories(fake_nccl PRIVATE $<TARGET_PROPERTY:headrace_nccl_library,INTERFACE_INCLUDE_DIRECTORIES>)
  target_link_libraries(fake_nccl PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  # The module asks for the library by this name.
  target_link_options(fake_nccl PRIVATE -Wl,-soname,libnccl.so.2)
  headrace_test(sidecar/device/nccl_exchange DEPS headrace::sidecar_device LABELS "unit;tsan")
  add_dependencies(sidecar_device_nccl_exchange_test headrace_nccl fake_nccl fake_cuda)
  set_tests_properties(sidecar/device/nccl_exchange PROPERTIES
    ENVIRONMENT "HEADRACE_LIBCUDA=$<TARGET_FILE:fake_cuda>;HEADRACE_LIBNCCL=$<TARGET_FILE:fake_nccl>")
endif()
# Skipped without a GPU.
if(HEADRACE_HAVE_NCCL)
  headrace_test(sidecar/device/nccl_gpu DEPS headrace::sidecar_device LABELS "unit;gpu")
  add_dependencies(sidecar_device_nccl_gpu_test headrace_nccl)
endif()
headrace_test(common/gpu/driver DEPS headrace::common_gpu fake_cuda)
headrace_test(fakes/fake_cuda DEPS headrace::common_gpu fake_cuda LABELS "unit;tsan")
set_tests_properties(common/gpu/driver fakes/fake_cuda PROPERTIES
  ENVIRONMENT "HEADRACE_LIBCUDA=$<TARGET_FILE:fake_cuda>")
if(TARGET fake_nccl AND TARGET loader_exchange_test)
  add_dependencies(loader_exchange_test fake_nccl fake_cuda)
  set_tests_properties(loader/exchange PROPERTIES
    ENVIRONMENT "HEADRACE_LIBCUDA=$<TARGET_FILE:fake_cuda>;HEADRACE_LIBNCCL=$<TARGET_FILE:fake_nccl>")
endif()
