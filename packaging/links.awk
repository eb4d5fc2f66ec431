# Makes the links of a document hold where it is installed. Reads the list of installed files from its first input and
# the document from the second. Variables: page, the document's path in this tree; headers, the way from it to the
# include folder.
#
# Links to installed files stay, links to headers go to the installed headers, and links to other files become plain
# text.

function folder(path) { return sub("/[^/]*$", "", path) ? path : "" }

# The path in this tree that `target` has, seen from the document.
function resolve(target,    path) {
	path = (folder(page) == "" ? "" : folder(page) "/") target
	while (sub("[^/]+/\\.\\./", "", path))
		;
	sub("/$", "", path)
	return path
}

function link(text, target,    anchor, path) {
	if (target ~ /^([a-z]+:|#)/)
		return "[" text "](" target ")"
	anchor = ""
	if (match(target, "#")) {
		anchor = substr(target, RSTART)
		target = substr(target, 1, RSTART - 1)
	}
	path = resolve(target)
	if (path in installed)
		return "[" text "](" target anchor ")"
	if (sub("^include/", "", path))
		return "[" text "](" headers "/" path anchor ")"
	return text
}

NR == FNR {
	installed[$0]
	for (path = folder($0); path != ""; path = folder(path))
		installed[path]
	next
}

# Code is shown, not linked.
/^```/ { in_code = !in_code }
in_code { print; next }

{
	done = ""
	while (match($0, /\[[^][]*\]\([^)]*\)/)) {
		before = substr($0, 1, RSTART - 1)
		found = substr($0, RSTART + 1, RLENGTH - 2)
		$0 = substr($0, RSTART + RLENGTH)
		at = index(found, "](")
		done = done before link(substr(found, 1, at - 1), substr(found, at + 2))
	}
	print done $0
}
