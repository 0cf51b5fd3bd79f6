# Objects of ein under sanitizers within this build, for tests of .ci/run: only what is to be sanitized is compiled once more,
# optimised enough to be quick, with line numbers and assertions. What else a test links is this build's: inner loops,
# decompositions and what writes machine code. The presets asan and tsan sanitize all of it.

# ein_NAME: ein's sources that `sources` matches under `sanitizers`.
function(add_sanitized_objects name sanitizers sources)
  set(sanitized ${ein_sources} ${engine_sources})
  list(FILTER sanitized INCLUDE REGEX "${sources}")
  add_library(ein_${name} OBJECT EXCLUDE_FROM_ALL ${sanitized})
  target_include_directories(ein_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}
                                                 ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(ein_${name} PRIVATE ein ein_plain_options Threads::Threads Eigen3::Eigen taocpp::pegtl
                                            nlohmann_json::nlohmann_json)
  target_compile_options(ein_${name}
    PRIVATE -O1 -g1 -UNDEBUG -fno-sanitize-recover=all -fno-omit-frame-pointer
    PUBLIC -fsanitize=${sanitizers})
  target_link_options(ein_${name} PUBLIC -fsanitize=${sanitizers})
  target_precompile_headers(ein_${name} PRIVATE ${ein_precompiled})
endfunction()
add_sanitized_objects(asan address,undefined ".")
# The rooms whose objects threads share.
add_sanitized_objects(tsan thread "/src/(backend|cuda|data|mesh|runtime|tensor)/|/src/cpu/(backend|cache|parallel)\\.cpp$")
