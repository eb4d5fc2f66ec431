# Read by install.sh and uninstall.sh: the places, and what to say if one of them is wrong.
# shellcheck shell=sh

fail() {
	echo "tickwheel: $1" >&2
	exit 1
}

for place in PREFIX libdir includedir datadir mandir docdir; do
	eval "path=\${$place:-}"
	case $path in
	*[!A-Za-z0-9/._+~@:,=-]*) fail "$place='$path' holds a character that pkg-config files and the like cannot" ;;
	/*) ;;
	*) fail "$place='$path' is not an absolute path" ;;
	esac
	path=$(printf '%s\n' "$path" | tr -s / | sed 's|\(.\)/$|\1|')
	eval "$place=\$path"
done
case ${DESTDIR:-} in
"" | /*) ;;
*) fail "DESTDIR='$DESTDIR' is not an absolute path" ;;
esac

to_lib=${DESTDIR:-}$libdir
to_include=${DESTDIR:-}$includedir
to_data=${DESTDIR:-}$datadir/tickwheel
to_man=${DESTDIR:-}$mandir
to_doc=${DESTDIR:-}$docdir

# Prints the way from folder $1 to $2, which are absolute: relative 3/lib 3/include is ../include.
relative() {
	from=$1
	up=
	until case $2/ in "$from"/*) ;; *) false ;; esac do
		from=${from%/*}
		up=../$up
	done
	down=${2#"$from"}
	down=$up${down#/}
	echo "${down%/}"
}

# An installed tree can be moved if library, headers and data lie in the prefix. The system's own prefix stays where
# it is.
movable() {
	case $libdir/$includedir/$datadir/$docdir in
	*/../* | */./*) return 1 ;;
	esac
	[ "$PREFIX" != /usr ] &&
		case $libdir/ in "$PREFIX"/*) case $includedir/ in "$PREFIX"/*) case $datadir/ in "$PREFIX"/*)
			return 0 ;; esac ;; esac ;; esac
	return 1
}

# The documents and examples that are installed, as paths of this tree. Makefiles that lean on this tree are left out.
documents() {
	ls README.md CHANGELOG.md LICENSE docs/*
	find examples -type f ! -name '*.mk' -print | LC_ALL=C sort
}

# Removes the documents of whatever version is installed.
remove_documents() {
	[ -e "$to_doc/README.md" ] && grep -q '^# tickwheel' "$to_doc/README.md" || return 0
	rm -f "$to_doc/README.md" "$to_doc/CHANGELOG.md" "$to_doc/LICENSE"
	rm -rf "$to_doc/docs" "$to_doc/examples"
}
