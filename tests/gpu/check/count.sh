# The plan as a list: section and limit. Exit status 1 when the limits and the reserve are more than the budget, or a name comes
# twice.
sum=0 twice=
seen=" "
count_up() {
  printf '%-22s %4d s\n' "$1" "$2"
  sum=$((sum + $2))
  [[ $seen != *" $1 "* ]] || twice="$twice $1"
  seen="$seen$1 "
}
section() { count_up "$1" "$2"; }
together() { count_up "$1" "$2"; }
again() { count_up again "$1"; }
member() {
  [[ $seen != *" $1 "* ]] || twice="$twice $1"
  seen="$seen$1 "
}
gather() { :; }
plan
echo "$sum s of sections, $reserve s for the results: $((sum + reserve)) of $budget s"
[ -z "$twice" ] || { echo "error: these names come twice:$twice" >&2; false; } &&
  { [ $((sum + reserve)) -le "$budget" ] || { echo "error: the sections do not fit" >&2; false; }; }
