#!/bin/sh
# Prints where each thread of a process stands: stacks.sh PROCESS
# gdb prints the stacks. Without gdb, or where another tracer holds the process, the system's
# words have to do: state, system call, and what the thread waits for in the kernel.
process=$1
echo "process $process: $(tr '\0' ' ' <"/proc/$process/cmdline")"
if command -v gdb >/dev/null; then
	timeout 60 gdb --batch --nx -p "$process" -ex 'thread apply all backtrace' 2>&1 |
		grep -v -e '^warning' -e '^\[New LWP' -e '^Download'
fi
for thread in "/proc/$process/task"/*; do
	state=$(grep -E '^(State|TracerPid)' "$thread/status" | tr '\n\t' '  ')
	echo "$(cat "$thread/comm"): $state syscall $(cat "$thread/syscall") in $(cat "$thread/wchan")"
done 2>/dev/null
echo "load $(cat /proc/loadavg)"
