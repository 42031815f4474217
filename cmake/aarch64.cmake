# Toolchain: 64-bit Arm on a Debian or Ubuntu machine of another kind. Tests run under qemu, as the best processor it knows;
# -DCMAKE_CROSSCOMPILING_EMULATOR="qemu-aarch64-static;-L;/usr/aarch64-linux-gnu;-cpu;cortex-a57" makes it another.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
find_program(qemu_aarch64 NAMES qemu-aarch64-static qemu-aarch64)
if(qemu_aarch64)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${qemu_aarch64};-L;/usr/aarch64-linux-gnu;-cpu;max" CACHE STRING "runs a test")
endif()
