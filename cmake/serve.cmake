# wager-serve, over include/wager.h alone. Left out where libmicrohttpd is not there.
if(NOT MICROHTTPD_FOUND)
  message(STATUS "wager-serve: left out; it needs libmicrohttpd 0.9.71 or newer (Debian: libmicrohttpd-dev)")
  return()
endif()

file(GLOB serve_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/serve/*.c)
list(REMOVE_ITEM serve_files ${CMAKE_SOURCE_DIR}/serve/main.c)
add_custom_command(OUTPUT page.c
  COMMAND ${CMAKE_COMMAND} -DIN=${CMAKE_SOURCE_DIR}/serve/page.html -DOUT=page.c -DNAME=wgs_page -DHEADER=serve/serve_page.h
    -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
  DEPENDS serve/page.html cmake/embed.cmake COMMENT "Embedding serve/page.html" VERBATIM)
add_library(wg_serve STATIC ${serve_files} page.c)
target_include_directories(wg_serve PUBLIC ${CMAKE_SOURCE_DIR})
target_link_libraries(wg_serve PUBLIC libwager PkgConfig::JANSSON PkgConfig::MICROHTTPD Threads::Threads m)
add_executable(wager-serve serve/main.c)
target_link_libraries(wager-serve PRIVATE wg_serve)
file(RELATIVE_PATH lib_from_bin /x/${CMAKE_INSTALL_BINDIR} /x/${CMAKE_INSTALL_LIBDIR})
set_target_properties(wager-serve PROPERTIES INSTALL_RPATH "$ORIGIN/${lib_from_bin}")
install(TARGETS wager-serve RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
add_dependencies(manual wager-serve) # its --help is wager-serve.1
