#!/bin/sh
# Manual pages and completion from the texts that there are: the program writes wager.1, a page for each command and the scripts of
# shells from its tables; wager.h.3 is the header, its first comment as the description.
# usage: cmake/manual.sh PROGRAM HEADER DIR
set -eu
program=$1 header=$2 dir=$3
version=$("$program" --version | cut -d ' ' -f 2)

# Text as it is: no line is a request, no backslash an escape.
literal() { printf '.nf\n'; sed -e 's/\\/\\e/g' -e "s/^\([.']\)/\\\\\&\1/" -e 's/-/\\-/g'; printf '.fi\n'; }

mkdir -p "$dir/man1" "$dir/completion"
"$program" help --man > "$dir/man1/wager.1"
"$program" list commands --json | sed -n 's/.*"name":"\([a-z-]*\)".*/\1/p' | while read -r command; do
  "$program" help "$command" --man > "$dir/man1/wager-$command.1"
done
"$program" completion bash > "$dir/completion/wager"
"$program" completion zsh > "$dir/completion/_wager"
"$program" completion fish > "$dir/completion/wager.fish"

{
  printf '.TH WAGER.H 3 "" "wager %s" "Library Functions"\n.SH NAME\nwager.h \\- libwager, speculative decoding as a library\n' "$version"
  printf '.SH SYNOPSIS\n.B #include <wager.h>\n.PP\ncc `pkg\\-config \\-\\-cflags \\-\\-libs wager`\n.SH DESCRIPTION\n'
  sed -n '2,/\*\//p' "$header" | sed -e 's/^ \* \{0,1\}//' -e 's/ *\*\/$//' | literal
  printf '.SH DECLARATIONS\n'
  sed '1,/\*\//d' "$header" | literal
  printf '.SH SEE ALSO\n.BR wager (1)\n'
} > "$dir/wager.h.3"
