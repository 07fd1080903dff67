headrace_test(sidecar/device/device DEPS headrace::sidecar_device)
foreach(part CUDA NCCL)
  target_compile_definitions(sidecar_device_device_test PRIVATE HEADRACE_HAVE_${part}=$<BOOL:${HEADRACE_HAVE_${part}}>)
endforeach()
if(HEADRACE_HAVE_NCCL)
  add_dependencies(sidecar_device_device_test headrace_nccl)
endif()

# A driver of our own, for tests: HEADRACE_LIBCUDA names it.
add_library(fake_cuda SHARED fakes/fake_cuda.cc fakes/fake_cuda_kernels.cc fakes/fake_cuda_memory.cc)
target_include_directories(fake_cuda PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(fake_cuda PRIVATE Threads::Threads)
# The image kernels: their arithmetic on the CPU, held to the maps, which the parts that need a GPU are without; and
# themselves, held to arithmetic, before the stand-in and, where there is one, on a GPU.
if(HEADRACE_PARTS STREQUAL "all")
  headrace_test(sidecar/device/image_tile DEPS headrace::sidecar)
endif()
if(HEADRACE_HAVE_CUDA)
  headrace_test(sidecar/device/image_kernel DEPS headrace::sidecar_device_ring headrace_cudart
                LABELS "unit;gpu")  # skipped without a GPU
  add_test(NAME sidecar/device/image_kernel_fake
           COMMAND sidecar_device_image_kernel_test --gtest_filter=-*.Bandwidth
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_dependencies(sidecar_device_image_kernel_test fake_cuda)
  set_tests_properties(sidecar/device/image_kernel_fake PROPERTIES
    ENVIRONMENT "HEADRACE_LIBCUDA=$<TARGET_FILE:fake_cuda>" LABELS unit TIMEOUT 120)
endif()
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
headrace_test(common/gpu/shared_memory DEPS headrace::common_gpu fake_cuda)
headrace_test(common/gpu/handover DEPS headrace::common_gpu fake_cuda LABELS "unit;tsan")
headrace_test(sidecar/device/device_layout DEPS headrace::sidecar_device_ring)
headrace_test(sidecar/device/device_ring DEPS headrace::sidecar_device_ring fake_cuda LABELS "unit;tsan")
set_tests_properties(common/gpu/driver common/gpu/handover common/gpu/shared_memory fakes/fake_cuda
                     sidecar/device/device_ring PROPERTIES
  ENVIRONMENT "HEADRACE_LIBCUDA=$<TARGET_FILE:fake_cuda>")

# Loaders that fill GPU memory, and trainers, in processes of their own.
foreach(program batch_dump device_trainer)
  add_executable(${program} loader/${program}.cc)
  target_link_libraries(${program} PRIVATE headrace::client)
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endforeach()
foreach(name device device_images device_kills memory_kinds)
  headrace_test(loader/${name} DEPS headrace::client headrace::common_spec headrace::sidecar_device_ring
                LABELS "unit;tsan")
  add_dependencies(loader_${name}_test headrace-loader batch_dump device_trainer fake_cuda)
  set_tests_properties(loader/${name} PROPERTIES TIMEOUT 600 ENVIRONMENT "HEADRACE_LIBCUDA=$<TARGET_FILE:fake_cuda>")
endforeach()
# These look into it.
foreach(name device device_images)
  target_link_libraries(loader_${name}_test PRIVATE fake_cuda)
endforeach()
# The same programs on a GPU; skipped where there is none.
foreach(name device_kills memory_kinds)
  add_test(NAME loader/${name}_gpu COMMAND loader_${name}_test WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(loader/${name}_gpu PROPERTIES LABELS "unit;gpu" TIMEOUT 1800)
endforeach()
# Their trainers in Python.
add_executable(make_plan loader/make_plan.cc)
target_link_libraries(make_plan PRIVATE headrace::common_spec)
set_target_properties(make_plan PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
if(TARGET headrace_python_native)
  foreach(name gpu_trainers gpu_trainers_gpu)
    add_test(NAME client/${name}
      COMMAND ${HEADRACE_PYTHON_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/client/gpu_trainers_test.py)
    set_tests_properties(client/${name} PROPERTIES TIMEOUT 600 ENVIRONMENT
      "PYTHONPATH=${CMAKE_BINARY_DIR}/python;PYTHONDONTWRITEBYTECODE=1;HEADRACE_LOADER=$<TARGET_FILE:headrace-loader>;HEADRACE_MAKE_PLAN=$<TARGET_FILE:make_plan>")
  endforeach()
  set_tests_properties(client/gpu_trainers PROPERTIES LABELS "unit;python")
  set_property(TEST client/gpu_trainers APPEND PROPERTY ENVIRONMENT "HEADRACE_LIBCUDA=$<TARGET_FILE:fake_cuda>")
  set_tests_properties(client/gpu_trainers_gpu PROPERTIES LABELS "unit;gpu")
  if(DEFINED ENV{PYTHONPATH})  # where torch and JAX may be
    set_tests_properties(client/gpu_trainers_gpu PROPERTIES
      ENVIRONMENT_MODIFICATION "PYTHONPATH=path_list_append:$ENV{PYTHONPATH}")
  endif()
endif()
if(TARGET fake_nccl AND TARGET loader_exchange_test)
  add_dependencies(loader_exchange_test fake_nccl fake_cuda)
  set_tests_properties(loader/exchange PROPERTIES
    ENVIRONMENT "HEADRACE_LIBCUDA=$<TARGET_FILE:fake_cuda>;HEADRACE_LIBNCCL=$<TARGET_FILE:fake_nccl>")
  # On a GPU, which all the loaders share; skipped where there is none.
  add_test(NAME loader/exchange_gpu COMMAND loader_exchange_test WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(loader/exchange_gpu PROPERTIES
    LABELS "unit;gpu" TIMEOUT 600 ENVIRONMENT NCCL_MULTI_RANK_GPU_ENABLE=1)
endif()
