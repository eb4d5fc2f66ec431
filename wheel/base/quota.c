/*
 * CPU quotas of control groups.
 *
 *   1. /proc/self/mountinfo says where control groups are mounted, and which group the mount shows
 *      as its root.
 *   2. /proc/self/cgroup says which group the process is in.
 *   3. That group's directory and all above it, up to the mount, may each have a quota. The
 *      smallest one counts.
 */
#include "wheel/base/quota.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_ROOM = 512, LINE_ROOM = 1024 };

/* Where the cpu controller's groups are. */
struct mount {
	bool v2;
	char shown[PATH_ROOM]; /* the group that is the mount's root */
	char at[PATH_ROOM];
};

static FILE *open_under(const char *root, const char *directory, const char *name)
{
	char path[2 * PATH_ROOM];
	int n = snprintf(path, sizeof path, "%s%s/%s", root, directory, name);
	return n < (int)sizeof path ? fopen(path, "re") : NULL;
}

/* Whether `item` is in a list that commas separate. */
static bool lists(const char *list, const char *item)
{
	size_t n = strlen(item);
	for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (strncmp(at, item, n) == 0 && (at[n] == ',' || at[n] == 0 || at[n] == '\n'))
			return true;
	return false;
}

/* The kernel writes blanks in paths as \040 and the like. */
static void unescape(char *path)
{
	char *to = path;
	for (const char *from = path; *from; to++) {
		if (*from == '\\' && strspn(from + 1, "01234567") >= 3) {
			*to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
			from += 4;
		} else
			*to = *from++;
	}
	*to = 0;
}

/* "36 35 98:0 /shown /at options [tag]... - type source super,options" */
static bool parse_mount(const char *line, struct mount *mount)
{
	char type[16], super[LINE_ROOM];
	const char *rest = strstr(line, " - ");
	if (!rest || sscanf(line, "%*s %*s %*s %511s %511s", mount->shown, mount->at) != 2 ||
	    sscanf(rest, " - %15s %*s %1023s", type, super) != 2)
		return false;
	unescape(mount->shown);
	unescape(mount->at);
	mount->v2 = strcmp(type, "cgroup2") == 0;
	return mount->v2 || (strcmp(type, "cgroup") == 0 && lists(super, "cpu"));
}

/* "0::/group" (v2), "4:cpu,cpuacct:/group" (v1) */
static bool parse_group(char *line, bool v2, char group[PATH_ROOM])
{
	char *controllers = strchr(line, ':'),
	     *path = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!path)
		return false;
	controllers++;
	*path++ = 0;
	path[strcspn(path, "\n")] = 0;
	if (v2 ? *controllers != 0 : !lists(controllers, "cpu"))
		return false;
	return snprintf(group, PATH_ROOM, "%s", path) < PATH_ROOM;
}

static bool find_group(const char *root, bool v2, char group[PATH_ROOM])
{
	char line[LINE_ROOM];
	bool found = false;
	FILE *file = open_under(root, "/proc/self", "cgroup");
	while (file && !found && fgets(line, sizeof line, file))
		found = parse_group(line, v2, group);
	if (file)
		fclose(file);
	return found;
}

/* The first numbers of a file, one after the other. False: there are fewer, as in "max 100000". */
static bool read_numbers(const char *root, const char *directory, const char *name, long long *out,
			 size_t n)
{
	char line[64] = "", *at = line, *end;
	FILE *file = open_under(root, directory, name);
	bool is_read = file && fgets(line, sizeof line, file);
	for (size_t i = 0; i < n && is_read; i++, at = end) {
		out[i] = strtoll(at, &end, 10);
		is_read = end != at;
	}
	if (file)
		fclose(file);
	return is_read;
}

/* UINT_MAX: none. */
static unsigned quota_of(const char *root, bool v2, const char *directory)
{
	long long numbers[2] = {0};
	/* cpu.max: "quota period", or "max period" */
	bool is_limit = v2 ? read_numbers(root, directory, "cpu.max", numbers, 2)
			   : read_numbers(root, directory, "cpu.cfs_quota_us", numbers, 1) &&
				 read_numbers(root, directory, "cpu.cfs_period_us", numbers + 1, 1);
	long long quota = numbers[0], period = numbers[1];
	if (!is_limit || quota <= 0 || period <= 0) /* v1 says -1 for none */
		return UINT_MAX;
	long long cpus = quota / period + (quota % period != 0);
	return cpus < UINT_MAX ? (unsigned)cpus : UINT_MAX;
}

/* The smallest quota of the group at `path` below the mount, and of those above it. */
static unsigned smallest_quota(const char *root, const struct mount *mount, char *path)
{
	char directory[2 * PATH_ROOM];
	unsigned smallest = UINT_MAX;
	for (;;) {
		snprintf(directory, sizeof directory, "%s%s", mount->at, path);
		unsigned quota = quota_of(root, mount->v2, directory);
		smallest = quota < smallest ? quota : smallest;
		char *last = strrchr(path, '/');
		if (!last)
			return smallest;
		*last = 0;
	}
}

/*
 * The group's path below the mount. A group that the mount does not show: the mount's root, which
 * is what a container sees.
 */
static char *below_mount(const struct mount *mount, char *group)
{
	size_t n = strcmp(mount->shown, "/") == 0 ? 0 : strlen(mount->shown);
	bool shown = strncmp(group, mount->shown, n) == 0 && (group[n] == '/' || group[n] == 0);
	char *path = shown ? group + n : group + strlen(group);
	if (strcmp(path, "/") == 0 || strstr(path, ".."))
		*path = 0;
	return path;
}

unsigned tw__quota_cpus(const char *root)
{
	unsigned smallest = UINT_MAX;
	struct mount mount;
	char line[LINE_ROOM], group[PATH_ROOM];
	FILE *file = open_under(root, "/proc/self", "mountinfo");
	while (file && fgets(line, sizeof line, file)) {
		if (!parse_mount(line, &mount) || !find_group(root, mount.v2, group))
			continue;
		unsigned quota = smallest_quota(root, &mount, below_mount(&mount, group));
		smallest = quota < smallest ? quota : smallest;
	}
	if (file)
		fclose(file);
	return smallest == UINT_MAX ? 0 : smallest;
}
