# cmake -DIN=FILE -DOUT=FILE.c -DNAME=NAME -DHEADER=FILE.h -P cmake/embed.cmake: a file as a C array with a NUL behind it.
file(READ ${IN} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "#include \"${HEADER}\"\nconst char ${NAME}[] = { ${bytes} 0 };\n")
