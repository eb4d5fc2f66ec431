#!/bin/sh
# embed.sh: projects that take the sources into their own build: a meson wrap, and CMake's FetchContent and
# add_subdirectory. The first two fetch a tar file of this tree. Each builds of it the library that the project links,
# and nothing else; its program runs, then with the layers. Knobs: CC, CXX.
. "$(dirname "$0")/../support/script.sh"

build=
. test/package/installed.sh
export CC

for tool in meson ninja cmake; do
	if ! command -v $tool >/dev/null 2>&1; then
		echo "embed: $tool was not found, left out"
		exit 0
	fi
done
version=$(packaging/version.sh)
name=tickwheel-$version
mkdir "$work/$name"
tar --exclude=./build --exclude=./.git -cf - . | tar -xf - -C "$work/$name"
tar -czf "$work/$name.tar.gz" -C "$work" "$name"
objects=$(for part in core short common; do packaging/sources.sh $part; done | wc -l)

# What a plain build of $1 makes of the library, in one line. $2: its folder there; $3: the form of its objects.
made() {
	ninja -C "$1" -n >"$work/out" 2>&1 || fail "$1: ninja -n"
	sed 's/^\[[0-9/]*\] //' "$work/out" >"$work/steps"
	[ "$(grep -c "$3" "$work/steps")" -eq "$objects" ] || fail "$1: not $objects objects"
	grep -v "$3" "$work/steps" | sed -n "s|.* $2/||p" | grep -v '\.symbols$' | sort | paste -sd' '
}

# $1: a folder of a project that was set up with a library of kind $2; $3, $4: as for made, $5: what a shared one makes.
builds_the_library() {
	case $2 in shared) wanted=$5 ;; static) wanted=libtickwheel.a ;; esac
	found=$(made "$1" "$3" "$4")
	[ "$found" = "$wanted" ] || fail "$1 builds: $found"
	quietly ninja -C "$1" || fail "$1: build"
	! grep -q 'warning:' "$work/out" || fail "$1: the compiler warns"
	runs "$1/program"
	linked=$(ldd "$1/program" | grep -c tickwheel) || true
	case $2 in shared) [ "$linked" -eq 1 ] ;; static) [ "$linked" -eq 0 ] ;; esac || fail "$1: links $linked"
}

# ---- a meson wrap

parent=$work/wrap
mkdir -p "$parent/subprojects"
cat >"$parent/subprojects/tickwheel.wrap" <<WRAP
[wrap-file]
directory = $name
source_url = file://$work/$name.tar.gz
source_filename = $name.tar.gz
source_hash = $(sha256sum "$work/$name.tar.gz" | sed 's/ .*//')

[provide]
dependency_names = tickwheel, tickwheel-layers
WRAP
cat >"$parent/meson.build" <<'BUILD'
project('parent', 'c')
executable('program', 'program.c', dependencies: dependency(get_option('package')))
BUILD
echo "option('package', type: 'string', value: 'tickwheel')" >"$parent/meson_options.txt"
cp "$project/program.c" "$parent/program.c"
for kind in shared static; do
	quietly meson setup "$work/wrap-$kind" "$parent" "-Ddefault_library=$kind" || fail "setup of a wrap"
	grep -q 'Subproject tickwheel' "$work/out" || grep -q 'subproject tickwheel' "$work/out" ||
		fail "the wrap was not used"
	builds_the_library "$work/wrap-$kind" $kind "subprojects/$name" \
		'^Compiling C object subprojects/tickwheel' "libtickwheel.so.$version"
	[ "$(meson introspect --tests "$work/wrap-$kind")" = '[]' ] || fail "the wrap has tests"
	cp "$project/layers.c" "$parent/program.c"
	quietly meson configure -Dpackage=tickwheel-layers "$work/wrap-$kind" || fail "configure"
	quietly ninja -C "$work/wrap-$kind" || fail "build of a wrap, with the layers"
	runs "$work/wrap-$kind/program"
	cp "$project/program.c" "$parent/program.c"
done

# ---- CMake: FetchContent, and add_subdirectory in a project of C++

mkdir "$work/fetch" "$work/subdirectory"
cat >"$work/fetch/CMakeLists.txt" <<LISTS
cmake_minimum_required(VERSION 3.24)
project(parent C)
include(FetchContent)
FetchContent_Declare(tickwheel URL file://$work/$name.tar.gz OVERRIDE_FIND_PACKAGE)
find_package(tickwheel 0.2 REQUIRED)
set(CMAKE_C_FLAGS "-Wall -Wextra")
add_executable(program $project/program.c)
target_link_libraries(program tickwheel::tickwheel)
add_executable(layers EXCLUDE_FROM_ALL $project/layers.c)
target_link_libraries(layers tickwheel::layers)
LISTS
cat >"$work/subdirectory/CMakeLists.txt" <<LISTS
cmake_minimum_required(VERSION 3.13)
project(parent CXX)
add_subdirectory($work/$name tickwheel)
add_executable(program program.cpp)
target_link_libraries(program tickwheel::tickwheel)
add_executable(layers EXCLUDE_FROM_ALL layers.cpp)
target_link_libraries(layers tickwheel::layers)
LISTS
for program in program layers; do cp "$project/$program.c" "$work/subdirectory/$program.cpp"; done
for way in fetch subdirectory; do
	for kind in shared static; do
		case $kind in shared) shared=ON ;; static) shared=OFF ;; esac
		case $way in
		fetch) folder=_deps/tickwheel-build type= ;;
		subdirectory) folder=tickwheel type=Debug ;;
		esac
		quietly cmake -Werror=dev -G Ninja -S "$work/$way" -B "$work/$way-$kind" -DBUILD_SHARED_LIBS=$shared \
			-DCMAKE_BUILD_TYPE=$type || fail "$way: cmake"
		builds_the_library "$work/$way-$kind" $kind "$folder" '^Building C object .*tickwheel_' \
			"libtickwheel.so libtickwheel.so.$version"
		quietly ninja -C "$work/$way-$kind" layers || fail "$way: build with the layers"
		runs "$work/$way-$kind/layers"
	done
done
echo "embed: ok (a meson wrap, FetchContent and add_subdirectory, shared and static; nothing but the library is built)"
