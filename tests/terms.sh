#!/bin/sh
# Checks the table "Where is it?" of CONTRIBUTING.md: every file exists, and its head comment has the term. Case, line breaks
# and hyphens do not count; "X (Y)" requires X and Y.
# usage: tests/terms.sh [ROOT]
cd "${1:-.}" || exit 2
awk -F'|' '
function plain(s) { s = tolower(s); gsub(/[^a-z0-9]+/, " ", s); return s }
function head(file,    line, text) {
  while ((getline line < file) > 0) { text = text " " line; if (line ~ /\*\//) break }
  close(file)
  return plain(text)
}
function wrong(what) { print "CONTRIBUTING.md:" NR ": " what; bad++ }
/^## / { table = /Where is it\?/; next }
table && /`/ && NF == 4 {
  terms++
  split($3, quoted, "`")
  file = quoted[2]
  if (system("test -f " file) != 0) { wrong("there is no file " file); next }
  text = head(file)
  n = split($2, part, /[()]/)
  for (i = 1; i <= n; i++) {
    term = plain(part[i]); gsub(/^ | $/, "", term)
    if (term != "" && !index(text, term)) wrong("the head comment of " file " does not say \"" term "\"")
  }
}
END {
  print terms + 0 " terms, " bad + 0 " wrong"
  exit !(terms >= 30 && !bad)
}' CONTRIBUTING.md
