# cmake -DROOT=. -P tests/layering.cmake
# Includes go down only: every #include "room/..." of a file must start with one of the prefixes that the table below allows its
# room. A folder is a room when it has a row; files of deeper folders belong to the deepest room that holds them. A header
# *_impl.h is private to its folder. The linker repeats the check between libraries. No two headers share a basename, so that a
# name alone identifies the file.
cmake_policy(SET CMP0057 NEW) # IN_LIST
set(rooms
  kernels kernels/rule kernels/cuda
  core/base core/file core/text core/kv core/dist core/model core/engine core/sched
  draft draft/length draft/lookup draft/lm draft/compose draft/external draft/train
  verify
  experiments/base experiments/config experiments/record experiments/analysis experiments/audit experiments/run experiments/report
  experiments/load experiments/pull experiments/bench experiments/cli
  api include serve)

set(allow_kernels       kernels/)
set(allow_kernels/rule  kernels/rule/ kernels/hd.h kernels/mask.h kernels/mass.h kernels/exp.h kernels/ln.h)
set(allow_kernels/cuda  kernels/)
set(allow_core/base     core/base/)
set(allow_core/file     core/base/ core/file/ kernels/types.h kernels/philox.h)
set(allow_core/text     core/base/ core/file/ core/text/)
set(allow_core/kv       core/base/ core/kv/ kernels/)
set(allow_core/dist     core/base/ core/dist/ kernels/)
set(allow_core/model    core/base/ core/file/ core/kv/ core/model/ kernels/)
set(allow_core/engine   core/ kernels/rule/rule_kinds.h kernels/philox.h kernels/mask.h kernels/mass.h kernels/ops.h kernels/cpu.h)
set(allow_core/sched    core/base/ core/dist/ core/model/ core/engine/ core/sched/)
set(draft_common        core/ kernels/philox.h draft/draft.h draft/one_hot.h draft/open.h draft/length/)
set(allow_draft         core/ kernels/philox.h draft/draft.h draft/one_hot.h draft/open.h)
set(allow_draft/length  core/ kernels/philox.h draft/length/)
set(allow_draft/lookup  ${draft_common} draft/lookup/)
set(allow_draft/lm      ${draft_common} draft/lm/)
set(allow_draft/compose ${draft_common} draft/compose/ draft/lm/)
set(allow_draft/external ${draft_common} draft/external/)
set(allow_draft/train   core/ kernels/philox.h kernels/exp.h kernels/cpu.h kernels/quant_blocks.h
  kernels/train.h kernels/train_elements.h kernels/cuda/gpu.h draft/train/)
set(allow_verify        core/base/ core/dist/ core/engine/ verify/ kernels/exp.h kernels/mass.h kernels/rule/)

# Rooms of the laboratory, each over those before it.
set(below core/ draft/ verify/ kernels/)
foreach(room base config record analysis audit run report load pull bench cli)
  list(APPEND below experiments/${room}/)
  set(allow_experiments/${room} ${below})
endforeach()

# libwager: over the rooms that the program shares with it, beside those of measurements, whose traces it reads and writes. The
# public header includes nothing.
set(allow_include)
set(allow_api include/wager.h core/ draft/ verify/ kernels/cpu.h kernels/mask.h api/ experiments/base/ experiments/config/
  experiments/analysis/ experiments/record/trace.h)

# The server is a program of the library's like any other, but for two headers that need no library.
set(allow_serve include/wager.h serve/ core/base/short_turns.h core/base/nearest.h)

get_filename_component(ROOT "${ROOT}" ABSOLUTE)
set(bad 0)
set(seen 0)
set(headers)
file(GLOB_RECURSE all RELATIVE ${ROOT} ${ROOT}/*.h ${ROOT}/*.cuh)
list(FILTER all EXCLUDE REGEX "^build/|^\\.")
foreach(file ${all})
  get_filename_component(name ${file} NAME)
  list(FIND headers ${name} at)
  if(NOT at EQUAL -1)
    message("${file}: another header is called ${name} already; name it after what it holds")
    math(EXPR bad "${bad} + 1")
  endif()
  list(APPEND headers ${name})
endforeach()

foreach(top kernels core draft verify experiments api include serve)
  file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${top}/*.c ${ROOT}/${top}/*.h ${ROOT}/${top}/*.cu ${ROOT}/${top}/*.cuh)
  foreach(file ${files})
    get_filename_component(room ${file} DIRECTORY)
    list(FIND rooms "${room}" at)
    while(at EQUAL -1 AND room)
      get_filename_component(room "${room}" DIRECTORY)
      list(FIND rooms "${room}" at)
    endwhile()
    if(NOT room)
      message("${file}: in no room of tests/layering.cmake")
      math(EXPR bad "${bad} + 1")
      continue()
    endif()
    file(STRINGS ${ROOT}/${file} lines REGEX "^[ \t]*#[ \t]*include[ \t]+\"")
    foreach(line ${lines})
      string(REGEX REPLACE "^[^\"]*\"([^\"]+)\".*$" "\\1" include "${line}")
      math(EXPR seen "${seen} + 1")
      set(legal FALSE)
      foreach(prefix ${allow_${room}})
        string(FIND "${include}" "${prefix}" at)
        if(at EQUAL 0)
          set(legal TRUE)
        endif()
      endforeach()
      if(include MATCHES "_impl\\.h$")
        get_filename_component(owner ${include} DIRECTORY)
        string(FIND "${file}" "${owner}/" at)
        if(NOT at EQUAL 0)
          message("${file}: \"${include}\" is private to ${owner}")
          math(EXPR bad "${bad} + 1")
        endif()
      endif()
      if(NOT legal)
        message("${file}: must not include \"${include}\" (${room} may include: ${allow_${room}})")
        math(EXPR bad "${bad} + 1")
      endif()
    endforeach()
  endforeach()
endforeach()
# What a drafter and a rule are built against knows no device: the closure of the includes of each contract, without what the
# regular expression behind it names.
foreach(contract "core/engine/drafter.h|^kernels/cuda/|^core/model/(cuda/|decode_loop)|^draft/"
                 "core/engine/verifier.h|^kernels/cuda/|^core/model/|^verify/")
  string(REPLACE "|" ";" refused "${contract}")
  list(GET refused 0 first)
  string(LENGTH "${first}|" n)
  string(SUBSTRING "${contract}" ${n} -1 refused)
  set(open ${first})
  set(closure)
  while(open)
    list(POP_FRONT open file)
    list(APPEND closure ${file})
    file(STRINGS ${ROOT}/${file} lines REGEX "^[ \t]*#[ \t]*include[ \t]+\"")
    foreach(line ${lines})
      string(REGEX REPLACE "^[^\"]*\"([^\"]+)\".*$" "\\1" include "${line}")
      if("${include}" MATCHES "${refused}")
        message("${first}: includes \"${include}\" through ${file}; a contract knows no device and no other drafter or rule")
        math(EXPR bad "${bad} + 1")
      elseif(NOT include IN_LIST closure AND NOT include IN_LIST open)
        list(APPEND open ${include})
      endif()
    endforeach()
  endwhile()
endforeach()
if(bad)
  message(FATAL_ERROR "${bad} of ${seen} includes and names go against the layering; move the code or the declaration down")
endif()
if(seen LESS 1000)
  message(FATAL_ERROR "only ${seen} includes seen: is ROOT (${ROOT}) the project?")
endif()
message(STATUS "layering: ${seen} includes, all legal")
