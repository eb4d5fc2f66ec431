/* Asks the kernel, the compiler and git. */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/machine.h"
#include "bench/measure.h"

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static void cut_newline(char *text)
{
	text[strcspn(text, "\n")] = 0;
}

static void look_cpu(char *cpu, size_t size)
{
	char line[256];
	snprintf(cpu, size, "unknown");
	FILE *file = fopen("/proc/cpuinfo", "re");
	while (file && fgets(line, sizeof line, file)) {
		char *value = strchr(line, ':');
		if (!value || strncmp(line, "model name", 10) != 0)
			continue;
		cut_newline(value);
		snprintf(cpu, size, "%s", value + 2);
		break;
	}
	if (file)
		fclose(file);
}

static void look_commit(char *commit, size_t size)
{
	snprintf(commit, size, "unknown");
	FILE *git = popen(
	    "git rev-parse HEAD 2>/dev/null && git diff --quiet HEAD 2>/dev/null || echo dirty",
	    "re");
	if (!git)
		return;
	char hash[48], dirty[48];
	if (fgets(hash, sizeof hash, git) && strlen(hash) >= 40) {
		cut_newline(hash);
		snprintf(commit, size, "%s%s", hash,
			 fgets(dirty, sizeof dirty, git) ? "-dirty" : "");
	}
	pclose(git);
}

unsigned machine_cores(void)
{
	cpu_set_t cpus;
	return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? (unsigned)CPU_COUNT(&cpus) : 1;
}

void machine_look(struct machine *machine)
{
	memset(machine, 0, sizeof *machine);
	machine->cores = machine_cores();
	look_cpu(machine->cpu, sizeof machine->cpu);
	snprintf(machine->compiler, sizeof machine->compiler, "%s", COMPILER);
	look_commit(machine->commit, sizeof machine->commit);
	machine->clock_ns = clock_cost_ns();
	machine->cas_ns = compare_and_swap_cost_ns();
	machine->first_touch_ns = first_touch_cost_ns();
}
