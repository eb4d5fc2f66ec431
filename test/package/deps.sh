#!/bin/sh
# deps.sh: where packages are missing, only `make demo` and `make test` install them, and NO_INSTALL=1 stops that, too.
# Each other target says in one line what it needs, and fails. Tools that record stand in for apt-get and sudo; the
# compiler finds no header of others.
. "$(dirname "$0")/../support/script.sh"

mkdir "$work/bin" "$work/tree"
git ls-files -z | xargs -0 tar cf - | tar xf - -C "$work/tree"
for tool in sh bash dirname basename mktemp rm sed id env make expr tr cat mkdir cmp echo printf nproc awk grep find \
	sort uname ls touch tail head cut date git tar; do
	path=$(command -v "$tool") && case $path in /*) ln -sf "$path" "$work/bin/$tool" ;; esac
done
stand_in() { printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1" && chmod +x "$work/bin/$1"; }
stand_in cc 'case "$*" in *-E*) ! grep -q "[</]criterion" ;; esac'
stand_in sudo 'echo "sudo $*" >>"$record"; [ "$1" = -n ] && shift; exec "$@"'
stand_in apt-get 'echo "apt-get $*" >>"$record"
case "$*" in *update*) ;; *) exit 1 ;; esac'
stand_in flock 'shift; exec "$@"'
record=$work/record
export record

# Runs make in the copy; what it said is in out.
made() {
	: >"$record"
	(cd "$work/tree" &&
		env -i PATH="$work/bin" record="$record" TMPDIR="$work" make --no-print-directory CC=cc "$@") \
		>"$work/out" 2>&1
}
refused() {
	! made "$@" || fail "'make $*' goes on without what it needs"
	[ ! -s "$record" ] || fail "'make $*' has called $(head -n 1 "$record")"
	told=$(grep -c '^tickwheel needs: .*\. To install them: sudo apt-get install [a-z0-9+ -]*$' "$work/out") || :
	[ "$told" -eq 1 ] ||
		fail "'make $*' does not say in one line what it needs"
	[ "$(grep -vc '^make' "$work/out")" -eq 1 ] || fail "'make $*' says more than what it needs"
}

# All targets that need something: their rules say so.
targets=$(sed -n 's/^\([a-z-]*\):.* deps-.*/\1/p' Makefile test/*/*.mk examples/*/*.mk packaging/*.mk |
	sort -u)
count=0
for target in $targets; do
	refused "$target"
	count=$((count + 1))
done
[ $count -gt 30 ] || fail "only $count targets need something"
refused install PREFIX="$work/prefix"
[ ! -e "$work/prefix" ] || fail "make install has begun"
refused tsan
refused check

for target in test demo; do
	refused $target NO_INSTALL=1
	! made $target || fail "make $target goes on without what it needs"
	grep -q 'apt-get .*install .*pkg-config' "$record" || fail "make $target installs nothing"
	grep -q '^installing what is missing, by apt-get: .*pkg-config' "$work/out" ||
		fail "make $target does not say so"
done
[ ! -e "$work/tree/build/release/libtickwheel.a" ] || fail "something was built"

echo "deps: ok ($count targets install nothing; make test and make demo do)"
