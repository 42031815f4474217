#!/bin/sh
# Checks the citations of docs/methods.md: behind "methods.md, " in code and "(methods.md#" in pages stands a heading of that page; further
# headings may follow behind commas. Pages that are not in the repository are cited nowhere.
# usage: tests/citations.sh [ROOT]
cd "${1:-.}" || exit 2
find core draft verify kernels experiments serve api include python examples tests tools docs README.md CONTRIBUTING.md -type f \
  \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.py' -o -name '*.sh' -o -name '*.md' \) \
  ! -path docs/methods.md ! -path tests/citations.sh | sort | awk '
function plain(s) { s = tolower(s); gsub(/[^a-z0-9]+/, "-", s); sub(/-$/, "", s); return s }
function wrong(what) { print file ": " what; bad++ }
# Whether a heading begins the text; its length in *begins.
function heading_at(s,    i, n) {
  begins = 0
  for (i = 1; i <= headings; i++) {
    n = length(heading[i])
    if (substr(s, 1, n) == heading[i] && substr(s, n + 1) ~ /^([,.;:)]| \()/ && n > begins) begins = n
  }
  return begins > 0
}
BEGIN {
  while ((getline line < "docs/methods.md") > 0)
    if (line ~ /^##+ /) { sub(/^#+ /, "", line); heading[++headings] = line; anchor[plain(line)] = 1 }
}
{
  file = $0
  text = ""
  while ((getline line < file) > 0) {
    if (line ~ /METHODS [A-Z]|DESIGN[.:) ]/) wrong("cites a page that is not in the repository: " line)
    if (file !~ /\.md$/) sub(/^[ \t]*(\/\*|\*|\/\/|#)?[ \t]*/, "", line)
    text = text " " line
  }
  close(file)
  for (rest = text; (at = index(rest, "methods.md, ")) > 0;) {
    rest = substr(rest, at + 12)
    cited++
    if (!heading_at(rest)) { wrong("docs/methods.md has no heading at \"" substr(rest, 1, 40) "\""); continue }
  }
  for (rest = text; match(rest, /\(methods\.md#[a-z0-9-]*\)/);) {
    name = substr(rest, RSTART + 12, RLENGTH - 13)
    rest = substr(rest, RSTART + RLENGTH)
    cited++
    if (!(name in anchor)) wrong("docs/methods.md has no heading #" name)
  }
}
END {
  print cited + 0 " citations of " headings + 0 " headings, " bad + 0 " wrong"
  exit !(cited >= 60 && headings >= 20 && !bad)
}'
