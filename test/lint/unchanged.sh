# shellcheck shell=sh
# Sourced by checks whose answer depends on nothing but files: what has passed is not checked again until one changes.
# `make clean` deletes the records.

# unless_passed RECORD KEY COMMAND...: runs the command, unless it has passed with the same key. Then says what it said.
unless_passed() {
	record=$1 key=$2
	shift 2
	if [ "$(head -n 1 "$record" 2>/dev/null)" = "$key" ]; then
		tail -n +2 "$record"
		return 0
	fi
	rm -f "$record"
	status=0
	"$@" >"$record.new" || status=$?
	cat "$record.new"
	[ $status -ne 0 ] || { echo "$key"; cat "$record.new"; } >"$record"
	rm -f "$record.new"
	return $status
}

# key_of TEXT FILE...: one line that differs if the text or a file does
key_of() {
	text=$1
	shift
	{ echo "$text" && cat "$@"; } | sha256sum
}
