# Read by install.sh and uninstall.sh: the places, and words for what can be wrong with them.
# shellcheck shell=sh

fail() {
	echo "tickwheel: $1" >&2
	exit 1
}

for place in PREFIX libdir includedir mandir docdir; do
	eval "path=\${$place:-}"
	case $path in
	*[!A-Za-z0-9/._+~@:,=-]*) fail "$place='$path' holds a character that pkg-config files and the like cannot" ;;
	/*) ;;
	*) fail "$place='$path' is not an absolute path" ;;
	esac
done
case ${DESTDIR:-} in
"" | /*) ;;
*) fail "DESTDIR='$DESTDIR' is not an absolute path" ;;
esac

to_lib=${DESTDIR:-}$libdir
to_include=${DESTDIR:-}$includedir
to_man=${DESTDIR:-}$mandir
to_doc=${DESTDIR:-}$docdir
