# find_compiler(<variable> <name> <oldest>): the command of a compiler of at least this major version, or nothing.
# It is looked for each time CMake runs: one that was installed since is found, one that was removed is not used.
function(find_compiler result name oldest)
  function(find_compiler_is_new_enough accepted candidate)
    execute_process(COMMAND ${candidate} -dumpfullversion -dumpversion
                    OUTPUT_VARIABLE version ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT version OR version VERSION_LESS oldest)
      set(${accepted} FALSE PARENT_SCOPE)
    endif()
  endfunction()
  set(names "")
  math(EXPR newest "${oldest} + 10")
  foreach(version RANGE ${oldest} ${newest})
    list(APPEND names ${name}-${version})
  endforeach()
  unset(command)  # the caller's, which would end the search
  find_program(command NAMES ${names} ${name} VALIDATOR find_compiler_is_new_enough NO_CACHE)
  if(NOT command)
    set(command "")
  endif()
  set(${result} "${command}" PARENT_SCOPE)
endfunction()
