# Apache Arrow C++ with Parquet, fetched at a pinned version into a cache outside the checkout; Debian 12 has none.
#
# Makes the targets Arrow::arrow and Arrow::parquet. Only what is linked into libheadrace_arrow.so or a test may use them
# (docs/decisions/0016-arrow-in-a-module.md).
#
#   -DHEADRACE_ARROW=OFF   build without it, and so without Parquet
option(HEADRACE_ARROW "Apache Arrow, for Parquet" ON)

if(HEADRACE_ARROW)
  # One wheel, whatever the Python that fetches it: nothing of it is imported.
  headrace_fetch_wheels(HEADRACE_ARROW_FETCHED NAME arrow SIZE "55 MB"
    PIP_OPTIONS --python-version 3.11 --implementation cp --abi cp311 --platform manylinux_2_28_x86_64)
  if(NOT HEADRACE_ARROW_FETCHED)
    message(FATAL_ERROR "Apache Arrow could not be fetched (the message above says why): give pip a way to its "
                        "package, or build without Parquet by -DHEADRACE_ARROW=OFF")
  endif()
  message(STATUS "Arrow: ${HEADRACE_ARROW_FETCHED}")
  foreach(library arrow parquet)
    file(GLOB real "${HEADRACE_ARROW_FETCHED}/pyarrow/lib${library}.so.*")
    add_library(Arrow::${library} SHARED IMPORTED)
    set_target_properties(Arrow::${library} PROPERTIES
      IMPORTED_LOCATION "${real}"
      INTERFACE_INCLUDE_DIRECTORIES "${HEADRACE_ARROW_FETCHED}/pyarrow/include")
    # Beside the module that needs them, as in the image: its run path is its own folder.
    get_filename_component(name "${real}" NAME)
    file(GLOB earlier "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/lib${library}.so.*")
    if(earlier)
      file(REMOVE ${earlier})
    endif()
    file(MAKE_DIRECTORY "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
    file(CREATE_LINK "${real}" "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/${name}" SYMBOLIC)
  endforeach()
  set_property(TARGET Arrow::parquet PROPERTY INTERFACE_LINK_LIBRARIES Arrow::arrow)
endif()
