# shellcheck shell=sh disable=SC2034
# warnings.sh, sourced: $warnings, which no public header may cause, in C or C++.
warnings="-Wall -Wextra -Wshadow -Wvla -Wpointer-arith -Wundef -Wcast-qual -pedantic -Werror"
