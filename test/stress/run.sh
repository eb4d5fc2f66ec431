#!/bin/sh
# stress.sh SECONDS AT_ONCE PROGRAM...: each for so many seconds, so many of them at a time; what one of several says is
# shown when it ends.
set -eu

seconds=$1 at_once=$2
shift 2
if [ "$at_once" = 1 ]; then
	for program; do
		"$program" "$seconds"
	done
	exit
fi
# shellcheck disable=SC2016 # for the inner shell
printf '%s\n' "$@" | xargs -P "$at_once" -I{} sh -c '
	status=0
	said=$("$0" "$1" 2>&1) || status=$?
	printf "%s\n" "$said"
	[ $status = 0 ] || { echo "$0 ended with $status"; exit 1; }' {} "$seconds"
