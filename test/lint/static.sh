#!/bin/sh
# static.sh: clang-tidy and cppcheck over the library. Nothing is said, or it fails. What is left out, and why:
#
#   clang-tidy
#   insecureAPI.DeprecatedOrUnsafeBufferHandling   asks for memcpy_s and snprintf_s, which Linux does not have
#   easily-swappable-parameters                    about taste; handles, ticks and nanoseconds are told apart by their
#                                                  names
#   no-int-to-ptr, casting-through-void            tagged words and CK's cells carry pointers: that is the data
#                                                  structure
#   reserved-identifier, dcl37                     tw__ is the prefix of what is shared inside; the C standard reserves
#                                                  _X and __ at the start
#   assignment-in-if-condition                     `while ((x = next()))` is the way of these sources
#   narrowing-conversions                          counts below 2^32 by construction (slots, entries of a chunk)
#   err33-c                                        answers of functions that cannot fail as they are called (mutexes,
#                                                  snprintf into enough)
#   misc-no-recursion                              there is none but over a bounded depth; it would be seen in review
#   mt-unsafe                                      strerror and the like: asked of no thread but the one that makes a
#                                                  service
#   macro-parentheses                              macros that take a type or a list
#   branch-clone, suspicious-include, implicit-widening, multiple-statement-macro, misplaced-widening-cast: none was
#   true here
#   cppcheck
#   unusedStructMember                             fields that only another file reads
#   normalCheckLevelMaxBranches, missingInclude*   about cppcheck itself
. "$(dirname "$0")/../support/script.sh"
. test/lint/unchanged.sh

checks='-*,bugprone-*,cert-*,clang-analyzer-*,concurrency-*,misc-*,performance-*,portability-*'
for left_out in clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling \
	bugprone-easily-swappable-parameters \
	performance-no-int-to-ptr bugprone-casting-through-void bugprone-reserved-identifier cert-dcl37-c \
	cert-dcl51-cpp bugprone-assignment-in-if-condition bugprone-narrowing-conversions cert-err33-c \
	misc-no-recursion concurrency-mt-unsafe bugprone-macro-parentheses bugprone-branch-clone \
	bugprone-suspicious-include bugprone-implicit-widening-of-multiplication-result \
	bugprone-multiple-statement-macro bugprone-misplaced-widening-cast misc-include-cleaner \
	misc-header-include-cycle; do
	checks="$checks,-$left_out"
done

sources=$(find mpsc wheel executor -name '*.c' | LC_ALL=C sort)
headers=$(find include mpsc wheel executor -name '*.h' | LC_ALL=C sort)
failed=0

check() {
	# One by one, as clang-tidy 14 loses sight of va_start when several are given to it; the largest, which take
	# longest, first.
	# shellcheck disable=SC2086 # a list of files
	ls -S $sources | xargs -P 2 -n 1 sh -c '
		clang-tidy --quiet --warnings-as-errors="*" -checks="$0" "$@" -- \
			-std=c11 -D_GNU_SOURCE -Iinclude -I. 2>/dev/null
	' "$checks" >"$work/tidy" || failed=1
	cat "$work/tidy" >&2

	# shellcheck disable=SC2086
	cppcheck --enable=warning,performance,portability --error-exitcode=1 --std=c11 --inline-suppr --quiet -j 2 \
		-Iinclude -I. -D__x86_64__ -D__LP64__ --suppress=missingInclude --suppress=missingIncludeSystem \
		--suppress=unusedStructMember $sources >&2 || failed=1

	[ $failed -eq 0 ] || { echo "static: clang-tidy or cppcheck complains" >&2; return 1; }
	# shellcheck disable=SC2086
	echo "static: ok ($(echo $sources | wc -w) files, clang-tidy and cppcheck)"
}

mkdir -p build
# shellcheck disable=SC2086
unless_passed build/static.passed "$(key_of "$(clang-tidy --version; cppcheck --version)" "$0" $sources $headers)" check
