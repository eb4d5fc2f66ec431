/* The CPU quota of the process's own control group (v2). */
#include "wheel/base/quota.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "mpsc/base/cancel.h"

/* The first line of a file, without its end; "" if there is none, or if it is too long. */
static void read_line(const char *root, const char *path, char line[PATH_MAX])
{
	char name[PATH_MAX];
	int n = snprintf(name, sizeof name, "%s%s", root, path);
	FILE *file = n < (int)sizeof name ? fopen(name, "re") : NULL;
	if (!file || !fgets(line, PATH_MAX, file) || !strchr(line, '\n'))
		line[0] = 0;
	line[strcspn(line, "\n")] = 0;
	if (file)
		fclose(file);
}

unsigned tw__quota_cpus(const char *root)
{
	TW__UNCANCELLED;
	char line[PATH_MAX], path[PATH_MAX];
	long long quota, period;
	read_line(root, "/proc/self/cgroup", line); /* "0::/group" */
	if (strncmp(line, "0::/", 4) != 0 ||
	    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", line + 3) >= (int)sizeof path)
		return 0;
	read_line(root, path, line); /* "quota period", or "max period" */
	if (sscanf(line, "%lld %lld", &quota, &period) != 2 || quota <= 0 || period <= 0)
		return 0;
	long long cpus = quota / period + (quota % period != 0);
	return cpus < UINT_MAX ? (unsigned)cpus : 0;
}
