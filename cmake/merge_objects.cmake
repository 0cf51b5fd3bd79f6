# Makes one object of several. If `visible` is given, that regular expression says which of their symbols are left
# visible. Else the functions and variables of the objects themselves are; hidden are all that is inline, which several
# of them may hold, and those of the static library `archive`, of which what they use is put in.
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
if(visible)
  symbols(hidden ${output}.all "A-Zuvw")
  set(shown "${hidden}")
  list(FILTER shown INCLUDE REGEX "${visible}")
  list(FILTER hidden EXCLUDE REGEX "${visible}")
  if(NOT shown)
    message(FATAL_ERROR "${output} has nothing that matches ${visible}")
  endif()
else()
  symbols(hidden ${output}.all "WVu")
endif()
if(archive)
  symbols(of_library ${archive} "TBDRC")
  list(APPEND hidden ${of_library})
endif()
list(REMOVE_DUPLICATES hidden)
list(JOIN hidden "\n" lines)
file(WRITE ${output}.hidden "${lines}\n")
run(${objcopy} --localize-symbols=${output}.hidden --redefine-sym stderr=ein_stderr ${output}.all ${output})
file(REMOVE ${output}.all)
