#!/bin/sh
# Manual pages from the texts that there are: wager.1 is the program's own --help, command by command; wager.h.3 is the header,
# its first comment as the description.
# usage: cmake/manual.sh PROGRAM HEADER DIR
set -eu
program=$1 header=$2 dir=$3
version=$("$program" --version | cut -d ' ' -f 2)

# Text as it is: no line is a request, no backslash an escape.
literal() { printf '.nf\n'; sed -e 's/\\/\\e/g' -e "s/^\([.']\)/\\\\\&\1/" -e 's/-/\\-/g'; printf '.fi\n'; }

{
  printf '.TH WAGER 1 "" "wager %s" "User Commands"\n.SH NAME\nwager \\- speculative decoding, measured and proved\n' "$version"
  printf '.SH SYNOPSIS\n.B wager\n.I COMMAND\n[arguments]\n.SH DESCRIPTION\n'
  "$program" --help | literal
  printf '.SH COMMANDS\n'
  "$program" --help | sed -n 's/^  \([a-z-]*\)  *[A-Z].*/\1/p' | while read -r command; do
    printf '.SS %s\n' "$command"
    "$program" "$command" --help | literal
  done
  printf '.SH EXIT STATUS\n0 done, 1 the work failed, 2 usage or configuration, 130 interrupted\n.SH SEE ALSO\n.BR wager.h (3)\n'
} > "$dir/wager.1"

{
  printf '.TH WAGER.H 3 "" "wager %s" "Library Functions"\n.SH NAME\nwager.h \\- libwager, speculative decoding as a library\n' "$version"
  printf '.SH SYNOPSIS\n.B #include <wager.h>\n.PP\ncc `pkg\\-config \\-\\-cflags \\-\\-libs wager`\n.SH DESCRIPTION\n'
  sed -n '2,/\*\//p' "$header" | sed -e 's/^ \* \{0,1\}//' -e 's/ *\*\/$//' | literal
  printf '.SH DECLARATIONS\n'
  sed '1,/\*\//d' "$header" | literal
  printf '.SH SEE ALSO\n.BR wager (1)\n'
} > "$dir/wager.h.3"
