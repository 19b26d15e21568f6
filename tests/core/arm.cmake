# 64-bit ARM from Debian's or Ubuntu's g++-aarch64-linux-gnu; programs run under QEMU.
# They are linked statically, so that QEMU needs no libraries of ARM, and optimised,
# because only then does the compiler fuse products and sums.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
find_program(DUALGAP_QEMU NAMES qemu-aarch64 qemu-aarch64-static REQUIRED)
set(CMAKE_CROSSCOMPILING_EMULATOR "${DUALGAP_QEMU}")
set(CMAKE_CXX_FLAGS_INIT "-O1 -Wno-psabi")

# Python's headers are those of this machine. Debian's include pyconfig.h by the
# processor's name: this machine's again.
find_program(host_python NAMES python3 python REQUIRED)
execute_process(
  COMMAND "${host_python}" -c "from sysconfig import *; print(get_path('include'), \
get_path('include') + '/../' + str(get_config_var('MULTIARCH')), sep=';', end='')"
  OUTPUT_VARIABLE paths COMMAND_ERROR_IS_FATAL ANY)
list(GET paths 0 headers)
list(GET paths 1 by_processor)
set(Python_EXECUTABLE "${host_python}" CACHE FILEPATH "")
set(Python_INCLUDE_DIR "${headers}" CACHE PATH "")
file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/include")
file(CREATE_LINK "${by_processor}" "${CMAKE_BINARY_DIR}/include/aarch64-linux-gnu" SYMBOLIC)
include_directories(BEFORE SYSTEM "${CMAKE_BINARY_DIR}/include")
