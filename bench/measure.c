/*
 * Reads what the kernel tells in /proc. Meant for the edges of a measurement: each call costs
 * microseconds.
 */
#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/measure.h"

uint64_t process_cpu_ns(void)
{
	return read_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t thread_cpu_ns(void)
{
	return read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void sleep_until_ns(uint64_t at_ns)
{
	struct timespec t = {.tv_sec = (time_t)(at_ns / 1000000000),
			     .tv_nsec = (long)(at_ns % 1000000000)};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/* The number behind the first line of a file that begins with `key`; 0 if there is none. */
static uint64_t number_in_file(const char *path, const char *key)
{
	FILE *file = fopen(path, "re");
	if (!file)
		return 0;
	char line[256];
	uint64_t number = 0;
	while (fgets(line, sizeof line, file))
		if (strncmp(line, key, strlen(key)) == 0) {
			number = strtoull(line + strlen(key), NULL, 10);
			break;
		}
	fclose(file);
	return number;
}

uint64_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long total, resident;
	bool ok = file && fscanf(file, "%llu %llu", &total, &resident) == 2;
	if (file)
		fclose(file);
	return ok ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

uint64_t resident_peak_bytes(void)
{
	return number_in_file("/proc/self/status", "VmHWM:") * 1024;
}

void forget_resident_peak(void)
{
	FILE *file = fopen("/proc/self/clear_refs", "we");
	if (!file)
		return;
	fputs("5", file);
	fclose(file);
}

uint64_t available_memory_bytes(void)
{
	return number_in_file("/proc/meminfo", "MemAvailable:") * 1024;
}

uint64_t other_threads_sleeps(void)
{
	DIR *tasks = opendir("/proc/self/task");
	if (!tasks)
		return 0;
	uint64_t sleeps = 0;
	for (struct dirent *task; (task = readdir(tasks));) {
		long id = strtol(task->d_name, NULL, 10);
		if (id == 0 || id == (long)gettid())
			continue;
		char path[64];
		snprintf(path, sizeof path, "/proc/self/task/%ld/status", id);
		sleeps += number_in_file(path, "voluntary_ctxt_switches:");
	}
	closedir(tasks);
	return sleeps;
}

struct cpu_use machine_cpu_use(void)
{
	struct cpu_use use = {0};
	unsigned long long user, nice, system, irq, softirq, steal;
	FILE *file = fopen("/proc/stat", "re");
	if (!file)
		return use;
	uint64_t unit_ms = 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
	/* idle and iowait stand between system and irq */
	if (fscanf(file, "cpu %llu %llu %llu %*u %*u %llu %llu %llu", &user, &nice, &system, &irq,
		   &softirq, &steal) == 6) {
		use.busy_ms = (user + nice + system + irq + softirq) * unit_ms;
		use.stolen_ms = steal * unit_ms;
	}
	fclose(file);
	return use;
}

static uint64_t used_ms(int who)
{
	struct rusage usage;
	if (getrusage(who, &usage) < 0)
		return 0;
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

uint64_t family_cpu_ms(void)
{
	return used_ms(RUSAGE_SELF) + used_ms(RUSAGE_CHILDREN);
}

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

double clock_cost_ns(void)
{
	enum { ROUNDS = 20, READS = 20000 };
	double best = 1e9;
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t start = now_ns(), last = start;
		for (int i = 0; i < READS; i++)
			last = now_ns();
		best = smaller(best, (double)(last - start) / READS);
	}
	return best;
}

double compare_and_swap_cost_ns(void)
{
	enum { ROUNDS = 20, SWAPS = 50000 };
	static _Alignas(64) _Atomic uint64_t word;
	double best = 1e9;
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t start = now_ns(), seen = atomic_load(&word);
		for (int i = 0; i < SWAPS; i++)
			if (atomic_compare_exchange_strong(&word, &seen, seen + 1))
				seen++;
		best = smaller(best, (double)(now_ns() - start) / SWAPS);
	}
	return best;
}

double first_touch_cost_ns(void)
{
	enum { PAGES = 8192, PAGE = 4096 };
	volatile char *memory = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return 0;
	madvise((void *)memory, (size_t)PAGES * PAGE, MADV_NOHUGEPAGE);
	uint64_t start = now_ns();
	for (size_t page = 0; page < PAGES; page++)
		memory[page * PAGE] = 1;
	double cost = (double)(now_ns() - start) / PAGES;
	munmap((void *)memory, (size_t)PAGES * PAGE);
	return cost;
}
