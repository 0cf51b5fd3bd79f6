# ein_kernels: the code that runs over elements, compiled for the instructions of one processor with EIN_NATIVE.
# All else is plain code of the architecture, and asks `require_processor` (src/tensor/processor.hpp) before it calls
# a kernel. `ein_kernel_objects` lists what becomes part of the library.
#
# Where GNU ld and objcopy are at hand, these objects are one, together with what they use of a static asmjit, and
# only ein's own functions are visible in it. Inline functions of Eigen, of the standard library and of our headers
# that were compiled for AVX-512 would else be merged with those of a program that is compiled for any processor. It also
# makes a static asmjit fit for a shared library: it is not position independent only in how it names `stderr`.
set(kernel_sources ${ein_sources})
list(FILTER kernel_sources INCLUDE REGEX "/src/(cpu/.*|nest/random|tensor/(convert|kernel_features))\\.cpp$")
list(FILTER kernel_sources EXCLUDE REGEX "/src/cpu/(backend|parallel)\\.cpp$")
list(REMOVE_ITEM ein_sources ${kernel_sources})

add_library(ein_kernels OBJECT ${kernel_sources})
target_compile_features(ein_kernels PUBLIC cxx_std_20)
set_target_properties(ein_kernels PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
target_include_directories(ein_kernels PRIVATE
  ${CMAKE_CURRENT_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR}/grammar
  ${CMAKE_CURRENT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(ein_kernels PRIVATE Threads::Threads Eigen3::Eigen taocpp::pegtl ein_native_options)
# A fused multiply-add would give other random numbers on other machines.
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/src/nest/random.cpp PROPERTIES
                            COMPILE_OPTIONS -ffp-contract=off SKIP_PRECOMPILE_HEADERS ON)
# Without errno to set, a loop of square roots becomes vector code.
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/src/cpu/strip.cpp PROPERTIES
                            COMPILE_OPTIONS -fno-math-errno SKIP_PRECOMPILE_HEADERS ON)

set(asmjit_archive "")
if(TARGET asmjit::asmjit)
  target_compile_definitions(ein_kernels PRIVATE EIN_ASMJIT=1)
  target_link_libraries(ein_kernels PRIVATE asmjit::asmjit)
  get_target_property(asmjit_type asmjit::asmjit TYPE)
  if(asmjit_type STREQUAL STATIC_LIBRARY)
    set(asmjit_archive $<TARGET_FILE:asmjit::asmjit>)
  endif()
endif()

set(ein_kernel_objects $<FILTER:$<TARGET_OBJECTS:ein_kernels>,EXCLUDE,\\.[gp]ch$>)  # no precompiled header

set(merge_kernels OFF)
if(CMAKE_SYSTEM_NAME STREQUAL Linux AND CMAKE_LINKER AND CMAKE_OBJCOPY AND CMAKE_NM AND NOT EIN_SANITIZE
   AND NOT EIN_FUZZ AND NOT CMAKE_INTERPROCEDURAL_OPTIMIZATION AND NOT CMAKE_CXX_FLAGS MATCHES "-flto")
  execute_process(COMMAND ${CMAKE_LINKER} --help OUTPUT_VARIABLE linker_help ERROR_QUIET)
  if(linker_help MATCHES "--force-group-allocation")
    set(merge_kernels ON)
  endif()
endif()
if(merge_kernels)
  set(merged ${CMAKE_CURRENT_BINARY_DIR}/$<CONFIG>/ein_kernels.o)
  set(merge_script ${CMAKE_CURRENT_SOURCE_DIR}/cmake/merge_objects.cmake)
  # Templates of namespace ein::host with their instances in one file, which tests call: a name and its length.
  set(visible "^_ZNK?3ein4host(4gemm|5apply|12bf16_product|15blocked_product|9StripExpr)I")
  add_custom_command(
    OUTPUT ${merged}
    COMMAND ${CMAKE_COMMAND} -D linker=${CMAKE_LINKER} -D objcopy=${CMAKE_OBJCOPY} -D nm=${CMAKE_NM}
            -D "archive=${asmjit_archive}" -D "objects=${ein_kernel_objects}" -D "visible=${visible}"
            -D output=${merged}
            -P ${merge_script}
    DEPENDS ein_kernels ${ein_kernel_objects} ${merge_script}
    COMMENT "Merging the kernels into one object"
    VERBATIM)
  set(ein_kernel_objects ${merged})
  set_source_files_properties(${merged} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  set(link_asmjit OFF)
  if(TARGET asmjit::asmjit AND NOT asmjit_archive)
    set(link_asmjit ON)
  endif()
else()
  set(link_asmjit OFF)
  if(TARGET asmjit::asmjit)
    set(link_asmjit ON)
  endif()
endif()
