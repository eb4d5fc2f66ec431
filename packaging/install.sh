#!/bin/sh
# install.sh [--check]: copies what was built to its places; with --check only asks whether it could. Called by `make
# install`, which says by the environment what goes where.
set -eu
cd "$(dirname "$0")/.."
. packaging/places.sh

# The nearest folder above $1 that exists decides.
writable() {
	dir=$1
	while [ ! -e "$dir" ]; do dir=$(dirname "$dir"); done
	[ -d "$dir" ] || fail "cannot install to $1: $dir is not a folder"
	probe=$(mktemp -d "$dir/.tickwheel.XXXXXX" 2>/dev/null) ||
		fail "cannot write to $dir: install as root, or to your own place: make install PREFIX=\$HOME/.local"
	rmdir "$probe"
}
for dir in "$to_lib" "$to_include" "$to_data" "$to_man" "$to_doc"; do writable "$dir"; done
[ "${1:-}" != --check ] || exit 0

# The places as pkg-config and CMake files name them.
if movable; then
	pc_prefix="\${pcfiledir}/$(relative "$libdir/pkgconfig" "$PREFIX")"
	pc_libdir="\${prefix}/$(relative "$PREFIX" "$libdir")"
	pc_includedir="\${prefix}/$(relative "$PREFIX" "$includedir")"
	pc_datadir="\${prefix}/$(relative "$PREFIX" "$datadir")"
	cmake_libdir="\${_tickwheel_here}/$(relative "$libdir/cmake/tickwheel" "$libdir")"
	cmake_includedir="\${_tickwheel_here}/$(relative "$libdir/cmake/tickwheel" "$includedir")"
else
	pc_prefix=$PREFIX
	pc_libdir=$libdir
	pc_includedir=$includedir
	pc_datadir=$datadir
	cmake_libdir=$libdir
	cmake_includedir=$includedir
fi

# $1: template; $2: target. No place may hold a '|'.
fill() {
	sed -e "s|@PC_PREFIX@|$pc_prefix|g; s|@PC_LIBDIR@|$pc_libdir|g; s|@PC_INCLUDEDIR@|$pc_includedir|g" \
		-e "s|@PC_DATADIR@|$pc_datadir|g" \
		-e "s|@CMAKE_LIBDIR@|$cmake_libdir|g; s|@CMAKE_INCLUDEDIR@|$cmake_includedir|g" \
		-e "s|@VERSION@|$VERSION|g; s|@SOVERSION@|$SOVERSION|g" "$1" >"$2"
	chmod 644 "$2"
}

# Each file is put beside its target and moved over it: a program that uses the old library goes on with it.
put() {
	install -m "$1" "$2" "$3.new$$"
	mv -f "$3.new$$" "$3"
}

install -d "$to_lib/pkgconfig" "$to_lib/cmake/tickwheel" "$to_include/tickwheel/cpp" "$to_data" "$to_doc"
for name in libtickwheel libtickwheel-layers; do
	put 644 "$LIBRARY/$name.a" "$to_lib/$name.a"
	put 755 "$LIBRARY/$name.so.$SOVERSION" "$to_lib/$name.so.$VERSION"
	ln -sfn "$name.so.$VERSION" "$to_lib/$name.so.$SOVERSION"
	ln -sfn "$name.so.$SOVERSION" "$to_lib/$name.so"
done

put 644 packaging/tsan.supp "$to_data/tsan.supp"

rm -f "$to_include/tickwheel"/*.h* "$to_include/tickwheel/cpp"/* # a header that the new version no longer has
for header in include/*.h include/*.hpp; do
	[ ! -e "$header" ] || put 644 "$header" "$to_include/$(basename "$header")"
done
for header in include/tickwheel/*.h*; do put 644 "$header" "$to_include/tickwheel/$(basename "$header")"; done
for header in include/tickwheel/cpp/*; do put 644 "$header" "$to_include/tickwheel/cpp/$(basename "$header")"; done

fill packaging/tickwheel.pc.in "$to_lib/pkgconfig/tickwheel.pc"
fill packaging/tickwheel-layers.pc.in "$to_lib/pkgconfig/tickwheel-layers.pc"
fill packaging/tickwheelConfig.cmake.in "$to_lib/cmake/tickwheel/tickwheelConfig.cmake"
fill packaging/tickwheelConfigVersion.cmake.in "$to_lib/cmake/tickwheel/tickwheelConfigVersion.cmake"

for pages in "$MANUAL"/man*; do
	section=${pages##*/}
	install -d "$to_man/$section"
	for page in "$pages"/*; do put 644 "$page" "$to_man/$section/$(basename "$page")"; done
done

# Documents and examples keep their places towards each other. Links to files that are not installed become plain text.
remove_documents
documents | while read -r file; do
	install -d "$(dirname "$to_doc/$file")"
	case $file in
	*.md)
		from=$(dirname "$docdir/$file")
		documents | awk -v page="$file" -v headers="$(relative "$from" "$includedir")" -f packaging/links.awk \
			- "$file" \
			>"$to_doc/$file.new$$"
		chmod 644 "$to_doc/$file.new$$"
		mv -f "$to_doc/$file.new$$" "$to_doc/$file"
		;;
	*) put 644 "$file" "$to_doc/$file" ;;
	esac
done

echo "installed tickwheel $VERSION: $to_lib, $to_include, $to_man"
if [ -z "${DESTDIR:-}" ] && command -v pkg-config >/dev/null 2>&1 &&
	! pkg-config --exists "tickwheel = $VERSION" 2>/dev/null; then
	echo "pkg-config does not look in $libdir/pkgconfig: export PKG_CONFIG_PATH=$libdir/pkgconfig"
fi
# What the dynamic linker knows already, and who is not root, needs no word.
if [ -z "${DESTDIR:-}" ] && ldconfig -p >/dev/null 2>&1; then
	if [ "$(id -u)" -eq 0 ]; then ldconfig; fi
	ldconfig -p | grep -q "$libdir/libtickwheel.so" ||
		echo "the dynamic linker does not look in $libdir: link with -Wl,-rpath,$libdir, or set LD_LIBRARY_PATH"
fi
