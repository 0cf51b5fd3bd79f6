# Makes one object of several and of what they use of a static library. Left visible are the functions and variables
# of the objects themselves; hidden are all that is inline, which several of them may hold, and the library's.
# `visible` is a regular expression for what is inline to linkers but is not to be hidden.
#   cmake -D linker= -D objcopy= -D nm= -D objects= -D archive= -D visible= -D output= -P merge_objects.cmake
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# The names of the defined symbols of a file whose kind is one of `kinds`.
function(symbols result file kinds)
  execute_process(COMMAND ${nm} --defined-only --format=posix ${file}
                  OUTPUT_VARIABLE lines ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^ \n]+ [${kinds}] [^\n]*" lines "${lines}")
  list(TRANSFORM lines REPLACE " .*" "")
  set(${result} "${lines}" PARENT_SCOPE)
endfunction()

cmake_path(GET output PARENT_PATH folder)
file(MAKE_DIRECTORY ${folder})
# A group is what linkers merge by its name. None is left, so nothing is merged with another library's code.
run(${linker} -r --force-group-allocation -o ${output}.all ${objects} ${archive})
symbols(hidden ${output}.all "WVu")
list(FILTER hidden EXCLUDE REGEX "${visible}")
if(archive)
  symbols(of_library ${archive} "TBDRC")
  list(APPEND hidden ${of_library})
endif()
list(REMOVE_DUPLICATES hidden)
list(JOIN hidden "\n" lines)
file(WRITE ${output}.hidden "${lines}\n")
run(${objcopy} --localize-symbols=${output}.hidden --redefine-sym stderr=ein_stderr ${output}.all ${output})
file(REMOVE ${output}.all)
