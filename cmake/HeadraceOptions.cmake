set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")

set(HEADRACE_SANITIZE "" CACHE STRING "Sanitizers for everything: 'address,undefined', 'thread' or empty")
option(HEADRACE_LIBFUZZER "Link the fuzz targets with libFuzzer, which clang has" OFF)

# Members left out of a designated initialiser take their default: that is what it is for.
add_compile_options(-Wall -Wextra -Werror -Wno-missing-field-initializers)
# The parts for a GPU machine are built by whatever compiler it has, which may know more warnings than g++ 12.
if(HEADRACE_PARTS STREQUAL "gpu" AND NOT CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.")
  add_compile_options(-Wno-error)
endif()
if(HEADRACE_SANITIZE)
  # GCC 12 sees uninitialised members in the standard library's own code once sanitizers are in (GCC bug 105562).
  add_compile_options(-fsanitize=${HEADRACE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  if(HEADRACE_SANITIZE STREQUAL thread)
    # Boost.Asio has fences, which GCC's ThreadSanitizer does not model and says so at each.
    add_compile_options(-Wno-tsan)
  endif()
  add_link_options(-fsanitize=${HEADRACE_SANITIZE})
endif()
if(HEADRACE_LIBFUZZER)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # Paths below the checkout count as relative, so that every clone on a machine shares what was compiled once.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

find_package(Threads REQUIRED)
if(HEADRACE_PARTS STREQUAL "all")
  find_package(OpenSSL REQUIRED)
  find_package(nlohmann_json REQUIRED)
endif()
