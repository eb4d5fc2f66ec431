#!/bin/sh
# ports.sh: the files for vcpkg and Conan. Neither program is needed: stand-ins (conan.py, vcpkg.cmake) run
# the port's portfile and the recipe's methods, with the command lines that the programs would use. A program is then
# built against each package. What stays untested is the programs themselves: downloads, caches, profiles, and what they
# check of a package.
set -eu
cd "$(dirname "$0")/../.."

tree=$PWD
CC=${CC:-cc}
export CC
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "ports: $1" >&2
	[ ! -s "$work/out" ] || tail -n 20 "$work/out" | sed 's/^/  /' >&2
	exit 1
}
quietly() { "$@" >"$work/out" 2>&1; }

for tool in meson ninja cmake python3; do
	if ! command -v $tool >/dev/null 2>&1; then
		echo "ports: $tool was not found, left out"
		exit 0
	fi
done
version=$(packaging/version.sh)
program=examples/request_timeout.c

# ---- vcpkg

python3 -c 'import json, sys
port = json.load(open(sys.argv[1]))
sys.exit(port["name"] != "tickwheel" or port["version"] != sys.argv[2])' \
	packaging/vcpkg/vcpkg.json "$version" >"$work/out" 2>&1 ||
	fail "vcpkg.json is not JSON, or of another version than $version"
quietly cmake -DTREE="$tree" -DWORK="$work/vcpkg" -DVCPKG_LIBRARY_LINKAGE=static -P test/package/vcpkg.cmake ||
	fail "the portfile"
for file in share/tickwheel/copyright share/tickwheel/usage share/tickwheel/tickwheelConfig.cmake \
	include/tickwheel.h; do
	[ -e "$work/vcpkg/package/$file" ] || fail "the port's package lacks $file"
done
[ ! -e "$work/vcpkg/package/lib/libtickwheel.so" ] || fail "the static package has a shared library"
mkdir "$work/project"
cp "$program" "$work/project/program.c"
cp examples/connection_permits.c "$work/project/above.c"
cat >"$work/project/CMakeLists.txt" <<'LISTS'
cmake_minimum_required(VERSION 3.13)
project(program C)
find_package(tickwheel 0.1 CONFIG REQUIRED)
add_executable(program program.c)
target_link_libraries(program PRIVATE tickwheel::tickwheel)
add_executable(above above.c)
target_link_libraries(above PRIVATE tickwheel::layers)
LISTS
quietly cmake -S "$work/project" -B "$work/cmake" -DCMAKE_C_COMPILER="${CC%% *}" \
	-DCMAKE_PREFIX_PATH="$work/vcpkg/package" &&
	quietly cmake --build "$work/cmake" || fail "a program by the port's package"
for made in program above; do
	quietly timeout 60 "$work/cmake/$made" || fail "a program by the port's package failed: $made"
done

# ---- Conan

mkdir "$work/conan"
quietly python3 test/package/conan.py "$tree" "$work/conan" shared || fail "the recipe"
grep -qx "version $version" "$work/out" || fail "the recipe's version is not $version"
libs=$(sed -n 's/^libs //p' "$work/out")
# shellcheck disable=SC2086 # lists
quietly $CC -o "$work/program" "$program" -I"$work/conan/package/include" -L"$work/conan/package/lib" $libs ||
	fail "a program by the recipe's package"
LD_LIBRARY_PATH=$work/conan/package/lib quietly timeout 60 "$work/program" ||
	fail "a program by the recipe's package failed"
echo "ports: ok (vcpkg's portfile and Conan's recipe, by stand-ins; programs built against both packages)"
