# libwager: include/wager.h as a shared and a static library, and what `cmake --install` and `cpack` make of them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The room api/, compiled once for both. Tests that need a thread sanitizer in one program link it as it is.
file(GLOB api_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/api/*.c)
add_library(wg_api STATIC ${api_files})
target_link_libraries(wg_api PUBLIC wg_lab)
set_target_properties(wg_api PROPERTIES POSITION_INDEPENDENT_CODE ON)

set(map ${CMAKE_SOURCE_DIR}/api/libwager.map)
add_library(libwager SHARED $<TARGET_OBJECTS:wg_api>)
target_link_libraries(libwager PRIVATE wg_lab)
target_include_directories(libwager INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_link_options(libwager PRIVATE -Wl,--version-script=${map})
set_target_properties(libwager PROPERTIES OUTPUT_NAME wager EXPORT_NAME wager SOVERSION 0 VERSION ${PROJECT_VERSION}
  PUBLIC_HEADER ${CMAKE_SOURCE_DIR}/include/wager.h LINK_DEPENDS ${map} LINKER_LANGUAGE C)

install(TARGETS libwager EXPORT wager LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} PUBLIC_HEADER DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS wager RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET wager-mpi)
  install(TARGETS wager-mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}) # beside libwager, where the loader looks
endif()

# The static library is one object in which every name but those of wager.h is local: nothing of ours meets names of the caller's.
if(NOT WG_SANITIZE)
  file(STRINGS ${map} exported REGEX "^    wg_")
  list(TRANSFORM exported REPLACE "[ ;]" "")
  string(REPLACE ";" "\n" exported "${exported}")
  file(CONFIGURE OUTPUT libwager.names CONTENT "${exported}\n")
  set(rooms wg_lab wg_setup wg_proof wg_verify wg_draft wg_trace wg_sched wg_engine wg_text wg_dist wg_model wg_comm wg_kv wg_file
    wg_base wg_kernels)
  if(WG_CUDA)
    list(APPEND rooms wg_cuda)
  endif()
  list(TRANSFORM rooms REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE archives)
  set(static ${CMAKE_BINARY_DIR}/libwager.a)
  add_custom_command(OUTPUT ${static}
    COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o libwager.o -Wl,--whole-archive $<TARGET_FILE:wg_api> -Wl,--no-whole-archive
      -Wl,--start-group ${archives} -Wl,--end-group
    COMMAND ${CMAKE_OBJCOPY} --keep-global-symbols=libwager.names libwager.o
    COMMAND ${CMAKE_COMMAND} -E rm -f ${static}
    COMMAND ${CMAKE_AR} rcs ${static} libwager.o
    DEPENDS wg_api ${rooms} ${map} WORKING_DIRECTORY ${CMAKE_BINARY_DIR} COMMENT "Linking static library libwager.a" VERBATIM)
  add_custom_target(libwager_static ALL DEPENDS ${static})
  install(FILES ${static} DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

# pkg-config and CMake packages.
set(cuda_libs)
if(WG_CUDA)
  set(cuda_libs " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt")
endif()
file(RELATIVE_PATH include_from_pc /x/${CMAKE_INSTALL_LIBDIR}/pkgconfig /x/${CMAKE_INSTALL_INCLUDEDIR})
configure_file(${CMAKE_SOURCE_DIR}/cmake/wager.pc.in wager.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/wager.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/wager)
install(EXPORT wager NAMESPACE wager:: DESTINATION ${package} FILE wagerConfig.cmake)
write_basic_package_version_file(wagerConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/wagerConfigVersion.cmake DESTINATION ${package})

# Manual pages and completion are the program's own tables and the header's own comments; the bill of materials names what is linked.
add_custom_command(OUTPUT man1/wager.1 completion/wager completion/_wager completion/wager.fish wager.h.3
  COMMAND ${CMAKE_SOURCE_DIR}/cmake/manual.sh $<TARGET_FILE:wager> ${CMAKE_SOURCE_DIR}/include/wager.h ${CMAKE_BINARY_DIR}
  DEPENDS wager cmake/manual.sh include/wager.h COMMENT "Writing manual pages and completion" VERBATIM)
add_custom_target(manual ALL DEPENDS man1/wager.1 wager.h.3)
install(DIRECTORY ${CMAKE_BINARY_DIR}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${CMAKE_BINARY_DIR}/wager.h.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
set(completion ${CMAKE_BINARY_DIR}/completion)
install(FILES ${completion}/wager DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${completion}/wager DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME wager-serve)
install(FILES ${completion}/_wager DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${completion}/wager.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
string(TIMESTAMP created UTC) # of SOURCE_DATE_EPOCH, where that is set
set(cuda_line)
if(WG_CUDA)
  set(cuda_line "\nPackageName: cudart\nSPDXID: SPDXRef-cudart\nPackageVersion: ${CUDAToolkit_VERSION}\nPackageDownloadLocation: NOASSERTION
PackageLicenseDeclared: LicenseRef-NVIDIA-CUDA-EULA\nRelationship: SPDXRef-wager STATIC_LINK SPDXRef-cudart\n")
endif()
set(serve_line)
if(MICROHTTPD_FOUND)
  set(serve_line "\nPackageName: libmicrohttpd\nSPDXID: SPDXRef-libmicrohttpd\nPackageVersion: ${MICROHTTPD_VERSION}
PackageDownloadLocation: NOASSERTION\nPackageLicenseDeclared: LGPL-2.1-or-later
Relationship: SPDXRef-wager DYNAMIC_LINK SPDXRef-libmicrohttpd\n")
endif()
configure_file(${CMAKE_SOURCE_DIR}/cmake/wager.spdx.in wager.spdx @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/wager.spdx ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# cpack -G DEB
set(CPACK_PACKAGE_NAME wager)
set(CPACK_PACKAGE_CONTACT "the wager project")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_GENERATOR DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
include(CPack)
