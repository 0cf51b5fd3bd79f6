# The code that runs over elements. `ein_kernel_objects` lists what of it becomes part of the library:
#
# - src/cpu/level/ is compiled once for each instruction set of the architecture, or with EIN_NATIVE for this machine's
#   processor alone. The objects of an instruction set become one, in which only its tables are visible
#   (src/cpu/level.hpp): inline functions of Eigen, of the standard library and of our headers that were compiled for
#   AVX-512 would else be merged with those of others. This takes GNU ld and objcopy. Without them there is one
#   instruction set: the architecture's baseline, or this machine's with EIN_NATIVE.
# - What makes machine code becomes one object together with what it uses of a static asmjit, in which only ein's own
#   functions are visible: programs may use an asmjit of their own. It also makes a static asmjit fit for a shared
#   library: it is not position independent only in how it names `stderr`.
# - The other engines of src/cpu/ are plain code of the architecture, and so are the decompositions of src/linalg/.
set(folder ${CMAKE_CURRENT_SOURCE_DIR}/src/cpu)
set(level_sources ${ein_sources})
list(FILTER level_sources INCLUDE REGEX "/src/cpu/level/")
set(code_sources ${ein_sources})
list(FILTER code_sources INCLUDE REGEX "/src/cpu/(assembler[^/]*|code_memory|row_code|vector_code)\\.cpp$")
set(engine_sources ${ein_sources})
list(FILTER engine_sources INCLUDE REGEX "/src/cpu/[^/]*\\.cpp$")
list(FILTER engine_sources EXCLUDE REGEX "/src/cpu/backend\\.cpp$")
list(REMOVE_ITEM engine_sources ${code_sources})
set(linalg_sources ${ein_sources})
list(FILTER linalg_sources INCLUDE REGEX "/src/linalg/")
list(REMOVE_ITEM ein_sources ${level_sources} ${code_sources} ${engine_sources} ${linalg_sources})

# A library of objects that are part of ein, compiled with `options`.
function(add_kernels name options)
  add_library(${name} OBJECT ${ARGN})
  target_compile_features(${name} PUBLIC cxx_std_20)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${name} PRIVATE
    ${CMAKE_CURRENT_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR}/grammar
    ${CMAKE_CURRENT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/generated)
  target_link_libraries(${name} PRIVATE Threads::Threads Eigen3::Eigen ${options})
endfunction()
# Those of Eigen's templates and of inner loops. What calls them is sanitized in any case.
set(loop_options ein_plain_options)
if(EIN_SANITIZE_ALL)
  set(loop_options ein_build_options)
endif()
macro(append_objects name)
  # A precompiled header is no object.
  list(APPEND ein_kernel_objects $<FILTER:$<TARGET_OBJECTS:${name}>,EXCLUDE,\\.[gp]ch$>)
endmacro()

# CMake's own may be LLVM's, which it prefers for Clang.
if(CMAKE_CROSSCOMPILING)
  set(EIN_LD "${CMAKE_LINKER}")
  set(EIN_OBJCOPY "${CMAKE_OBJCOPY}")
  set(EIN_NM "${CMAKE_NM}")
else()
  find_program(EIN_LD NAMES ld.bfd ld)
  find_program(EIN_OBJCOPY objcopy)
  find_program(EIN_NM nm)
  mark_as_advanced(EIN_LD EIN_OBJCOPY EIN_NM)
endif()
set(merges_kernels OFF)
if(CMAKE_SYSTEM_NAME STREQUAL Linux AND EIN_LD AND EIN_OBJCOPY AND EIN_NM AND NOT EIN_SANITIZE
   AND NOT EIN_FUZZ AND NOT CMAKE_INTERPROCEDURAL_OPTIMIZATION AND NOT CMAKE_CXX_FLAGS MATCHES "-flto")
  execute_process(COMMAND ${EIN_LD} --help OUTPUT_VARIABLE linker_help ERROR_QUIET)
  if(linker_help MATCHES "--force-group-allocation")
    set(merges_kernels ON)
  endif()
endif()

# The objects of library `name` become NAME.o, in which what matches `visible` is visible. `hidden` is an archive to be
# put in, of which nothing is.
macro(append_merged name visible hidden)
  set(merged ${CMAKE_CURRENT_BINARY_DIR}/$<CONFIG>/${name}.o)
  set(merge_script ${CMAKE_CURRENT_SOURCE_DIR}/cmake/merge_objects.cmake)
  set(objects $<FILTER:$<TARGET_OBJECTS:${name}>,EXCLUDE,\\.[gp]ch$>)
  add_custom_command(
    OUTPUT ${merged}
    COMMAND ${CMAKE_COMMAND} -D linker=${EIN_LD} -D objcopy=${EIN_OBJCOPY} -D nm=${EIN_NM}
            -D "archive=${hidden}" -D "objects=${objects}" -D "visible=${visible}" -D output=${merged}
            -P ${merge_script}
    DEPENDS ${name} ${objects} ${merge_script}
    COMMENT "Merging ${name} into one object"
    VERBATIM)
  set_source_files_properties(${merged} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  list(APPEND ein_kernel_objects ${merged})
endmacro()

# --- instruction sets ---

set(bf16_levels "")  # that differ from the one before in products of bf16 alone
set(x86_64 OFF)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  set(x86_64 ON)
endif()
if(EIN_NATIVE)
  set(levels native)
elseif(x86_64 AND merges_kernels)
  set(levels baseline v2 v3 v4)
  set(bf16_levels v4_bf16 v4_amx)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(levels neon)
else()
  set(levels baseline)
endif()
set(flags_of_native -march=native)
foreach(level v2 v3 v4)
  set(flags_of_${level} -march=x86-64-${level})
endforeach()
set(flags_of_v4_bf16 -march=x86-64-v4 -mavx512bf16)
# Without AVX512-BF16, which is slower than AVX-512 where there is AMX.
set(flags_of_v4_amx -march=x86-64-v4 -mamx-tile -mamx-bf16)
if(bf16_levels)
  # Processors without SSE4.2 are rare: for these the code is to be small.
  set(flags_of_baseline $<$<CONFIG:Release>:-Os>)
endif()

set(list_of_levels "")
set(tested_levels "")
if(EIN_TESTS AND bf16_levels)
  # Products by tiles whose instructions are emulated, for tests on processors without AMX.
  set(tested_levels emulated_tiles)
  set(flags_of_emulated_tiles -march=x86-64-v4 "-DEIN_EMULATED_TILES=\"${CMAKE_CURRENT_SOURCE_DIR}/tests/support/emulated_tiles.hpp\"")
endif()
foreach(level ${levels} ${bf16_levels} ${tested_levels})
  set(sources ${level_sources})
  if(level IN_LIST levels)
    string(APPEND list_of_levels "EIN_LEVEL_OF(${level})\n")
  else()
    list(FILTER sources INCLUDE REGEX "_bf16\\.cpp$")
  endif()
  if(level MATCHES "^(v4_amx|emulated_tiles)$")
    list(FILTER sources EXCLUDE REGEX "gemm_few(_bf16)?\\.cpp$")  # those of a lower one are as good
  endif()
  if(NOT level IN_LIST tested_levels)
    string(APPEND list_of_levels "EIN_BF16_OF(${level})\n")
  endif()
  add_kernels(ein_level_${level} ${loop_options} ${sources})
  # Eigen's functions have names of their own for each instruction set, too.
  target_compile_definitions(ein_level_${level} PRIVATE EIN_LEVEL=${level} Eigen=Eigen_${level})
  target_compile_options(ein_level_${level} PRIVATE ${flags_of_${level}})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12.3)
    # Its own AVX-512 intrinsics start from deliberately undefined vectors (GCC bug 105593).
    target_compile_options(ein_level_${level} PRIVATE -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
  if(EIN_SANITIZE MATCHES address AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Watching where the life of each variable ends takes GCC three times as long, and most are registers.
    target_compile_options(ein_level_${level} PRIVATE -fno-sanitize-address-use-after-scope)
  endif()
  if(merges_kernels)
    string(LENGTH ${level} length)
    append_merged(ein_level_${level} "^_ZN3ein4host${length}${level}(5level|13bf16_products)E$" "")
    if(level IN_LIST tested_levels)
      list(REMOVE_ITEM ein_kernel_objects ${merged})
      set(ein_tested_objects ${merged})
      add_custom_target(ein_tested_objects DEPENDS ${merged})
    endif()
  else()
    append_objects(ein_level_${level})
  endif()
endforeach()
file(CONFIGURE OUTPUT generated/ein_levels.hpp CONTENT "${list_of_levels}" @ONLY)

# A fused multiply-add would give other random numbers on other machines.
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/src/nest/random.cpp ${folder}/level/random.cpp PROPERTIES
                            COMPILE_OPTIONS -ffp-contract=off SKIP_PRECOMPILE_HEADERS ON)
# Without errno to set, a loop of square roots becomes vector code; without exceptions to raise, so do roundings.
set(strip_options -fno-math-errno -fno-trapping-math)
set_source_files_properties(${folder}/level/strip_loops.cpp ${folder}/level/convert.cpp PROPERTIES
                            COMPILE_OPTIONS "${strip_options}")

# --- machine code made at run time ---

add_kernels(ein_row_code ein_build_options ${code_sources})
# Asmjit has no run-time type information, so what derives from its classes has none.
set(without_types -fno-rtti)
if(EIN_SANITIZE)
  list(APPEND without_types -fno-sanitize=vptr)
endif()
set_source_files_properties(${folder}/assembler_errors.cpp PROPERTIES COMPILE_OPTIONS "${without_types}")
set(link_asmjit OFF)
set(asmjit_archive "")
if(TARGET asmjit::asmjit)
  target_compile_definitions(ein_row_code PRIVATE EIN_ASMJIT=1)
  target_link_libraries(ein_row_code PRIVATE asmjit::asmjit)
  get_target_property(asmjit_type asmjit::asmjit TYPE)
  if(merges_kernels AND asmjit_type STREQUAL STATIC_LIBRARY)
    set(asmjit_archive $<TARGET_FILE:asmjit::asmjit>)
  else()
    set(link_asmjit ON)
  endif()
endif()
if(asmjit_archive)
  append_merged(ein_row_code "" "${asmjit_archive}")
else()
  append_objects(ein_row_code)
endif()

# --- decompositions ---

# Programs may use an Eigen of their own, compiled with other flags.
add_kernels(ein_linalg ${loop_options} ${linalg_sources})
target_compile_definitions(ein_linalg PRIVATE Eigen=Eigen_ein_linalg)
append_objects(ein_linalg)
# Its templates take three times as long to compile with -O3.
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/src/linalg/decompose.cpp PROPERTIES
                            COMPILE_OPTIONS $<$<CONFIG:Release>:-O2>)

# --- other engines ---

add_kernels(ein_engines ein_build_options ${engine_sources})
append_objects(ein_engines)
