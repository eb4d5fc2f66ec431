#!/bin/sh
# uninstall.sh: removes what install.sh has put there, of whatever version. Called by `make uninstall`, with the same
# knobs.
set -eu
cd "$(dirname "$0")/.."
. packaging/places.sh

if [ ! -e "$to_include/tickwheel.h" ] && [ ! -e "$to_lib/libtickwheel.a" ]; then
	fail "is not installed in $to_include and $to_lib (knobs: PREFIX, libdir, includedir, DESTDIR as with install)"
fi

# Pages are ours by what they say, whatever the version was that brought them.
for page in "$to_man"/man[1-9]/tw_* "$to_man"/man[1-9]/tickwheel*; do
	[ ! -e "$page" ] || ! grep -q tickwheel "$page" || rm -f "$page"
done
for name in libtickwheel libtickwheel-layers; do
	rm -f "$to_lib/$name.a" "$to_lib/$name.so" "$to_lib/$name".so.[0-9]*
done
rm -f "$to_lib/pkgconfig/tickwheel.pc" "$to_lib/pkgconfig/tickwheel-layers.pc"
rm -f "$to_include/tickwheel.h" "$to_include"/tickwheel*.hpp
rm -rf "$to_include/tickwheel" "$to_lib/cmake/tickwheel"
rm -f "$to_data/tsan.supp"
remove_documents
for dir in "$to_data" "$to_doc" "$to_lib/cmake" "$to_lib/pkgconfig" "$to_man"/man[1-9]; do
	rmdir "$dir" 2>/dev/null || true # others' files keep it
done
echo "removed tickwheel from $to_lib, $to_include, $to_man"
