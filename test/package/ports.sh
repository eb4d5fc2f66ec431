#!/bin/sh
# ports.sh: the files for vcpkg and Conan. Neither program is needed: stand-ins (conan.py, vcpkg.cmake) run
# the port's portfile and the recipe's methods, with the command lines that the programs would use. A program is then
# built against each package. What stays untested is the programs themselves: downloads, caches, profiles, and what they
# check of a package.
. "$(dirname "$0")/../support/script.sh"

tree=$PWD
build=
. test/package/installed.sh
export CC

for tool in meson ninja cmake python3; do
	if ! command -v $tool >/dev/null 2>&1; then
		echo "ports: $tool was not found, left out"
		exit 0
	fi
done
version=$(packaging/version.sh)

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
runs_by_cmake -DCMAKE_PREFIX_PATH="$work/vcpkg/package"

# ---- Conan

mkdir "$work/conan"
quietly python3 test/package/conan.py "$tree" "$work/conan" shared || fail "the recipe"
grep -qx "version $version" "$work/out" || fail "the recipe's version is not $version"
libs=$(sed -n 's/^libs //p' "$work/out")
# shellcheck disable=SC2086 # lists
quietly $CC -o "$work/program" "$project/layers.c" -I"$work/conan/package/include" -L"$work/conan/package/lib" $libs ||
	fail "a program by the recipe's package"
runs "$work/program" "$work/conan/package/lib"
echo "ports: ok (vcpkg's portfile and Conan's recipe, by stand-ins; programs built against both packages)"
