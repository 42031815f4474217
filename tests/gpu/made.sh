# shellcheck shell=bash
# What nvcc made is kept while its text is the same: for tests/gpu/resources.sh and tests/gpu/pack.sh, which source this file
# in the project's root, with nvcc set to the compiler. OUT.d holds make's dependencies of OUT (nvcc -MD -MF), OUT.key a digest of
# the compilers' versions, the words of the command and the project's files among the dependencies. Headers of the toolkit and of
# the system are known by those versions only.

# made_digest OUT WORD...: the digest as the text is now; fails where a file is gone.
made_digest() {
  local files
  mapfile -t files < <(tr -s ' \\\n' '\n' <"$1.d" | grep -v -e '^/' -e ':$' -e '^$' | sort -u)
  [ ${#files[@]} -gt 0 ] || return 1
  { "$nvcc" --version && c++ --version && echo "${@:2}" "${NVCC_PREPEND_FLAGS-}" "${NVCC_APPEND_FLAGS-}" &&
    sha256sum "${files[@]}"; } 2>&1 | sha256sum
}

# is_made OUT WORD...: whether OUT was made by these words of the text that is there.
is_made() { [ -e "$1" ] && [ -e "$1.d" ] && [ -e "$1.key" ] && made_digest "$@" | cmp -s - "$1.key"; }

# note_made OUT WORD...: after the command has ended well.
note_made() { made_digest "$@" >"$1.key"; }
