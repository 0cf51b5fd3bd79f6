# ein's sources once more as objects under sanitizers, within this build, for two programs of tests that .ci/run has. Their
# tests and what else they link are this build's: inner loops, decompositions, and what writes machine code. The presets asan
# and tsan sanitize tests, too, and more of ein.

# ein_NAME: the sources that `pattern` matches, optimised enough to be quick, with line numbers and assertions.
function(add_sanitized_objects name pattern)
  set(sources ${ein_sources} ${engine_sources})
  list(FILTER sources INCLUDE REGEX "${pattern}")
  add_library(ein_${name} OBJECT EXCLUDE_FROM_ALL ${sources})
  target_include_directories(ein_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}
                                                 ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(ein_${name} PRIVATE ein ein_plain_options Threads::Threads Eigen3::Eigen taocpp::pegtl
                                            nlohmann_json::nlohmann_json)
  # Between a sanitizer's checks GCC finds variables without values that have one.
  target_compile_options(ein_${name} PRIVATE -O1 -g1 -UNDEBUG -fno-sanitize-recover=all -fno-omit-frame-pointer
                                             -Wno-maybe-uninitialized -Wno-subobject-linkage ${ARGN})
  target_precompile_headers(ein_${name} PRIVATE ${ein_precompiled})
  set_target_properties(ein_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
# Without emitters of kernels, whose tests are others, and without the checks of every pointer and of scopes, which take as
# long to compile as all the rest.
add_sanitized_objects(asan "/(src|grammar)/" -fsanitize=address,undefined
                      -fno-sanitize-address-use-after-scope
                      -fno-sanitize=null,alignment,vptr,object-size,nonnull-attribute,returns-nonnull-attribute,pointer-overflow)
# The rooms whose objects threads share, whole: in a joined build a file is linked with its room.
add_sanitized_objects(tsan "/src/(api|backend|cuda|data|machine|mesh|runtime|size|tensor)/|/src/cpu/backend\\.cpp$"
                      -fsanitize=thread)
