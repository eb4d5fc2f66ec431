/*
 * The default number of workers: processors, and the CPU quota of the control group, from files
 * that the test writes.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/support/expect.h"
#include "mpsc/base/process.h"

static char root[64];

static void make_root(void)
{
	strcpy(root, "/tmp/tw-quota-XXXXXX");
	cr_assert_not_null(mkdtemp(root));
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
	(void)stat;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_root(void)
{
	nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(pool_quota, .timeout = 60, .init = make_root, .fini = remove_root);

/* With the directories that it needs. */
static void write_file(const char *name, const char *text)
{
	char path[512];
	snprintf(path, sizeof path, "%s%s", root, name);
	for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = 0;
		mkdir(path, 0700);
		*at = '/';
	}
	FILE *file = fopen(path, "w");
	cr_assert_not_null(file);
	fputs(text, file);
	fclose(file);
}

static void v2(const char *group)
{
	char line[256];
	snprintf(line, sizeof line, "0::%s\n", group);
	write_file("/proc/self/cgroup", line);
}

static const struct {
	const char *text;
	unsigned cpus; /* rounded up, at least one; 0: no limit, or unreadable */
} limits[] = {
    {"200000 100000\n", 2},
    {"200001 100000\n", 3},
    {"150000 100000\n", 2},
    {"1000 100000\n", 1},
    {"100000 50000\n", 2},
    {"max 100000\n", 0},
    {"", 0},
    {"200000\n", 0},
    {"-1 100000\n", 0},
    {"0 0\n", 0},
    {"many 100000\n", 0},
};

Test(pool_quota, of_its_group_is_read)
{
	v2("/pod/app");
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		write_file("/sys/fs/cgroup/pod/app/cpu.max", limits[i].text);
		expect_eq(tw__quota_cpus(root), limits[i].cpus);
	}
}

Test(pool_quota, of_other_groups_does_not_count)
{
	v2("/pod/app");
	write_file("/sys/fs/cgroup/pod/cpu.max", "300000 100000\n");
	write_file("/sys/fs/cgroup/pod/other/cpu.max", "100000 100000\n");
	expect_eq(tw__quota_cpus(root), 0);
	write_file("/sys/fs/cgroup/pod/app/cpu.max", "500000 100000\n");
	expect_eq(tw__quota_cpus(root), 5);
}

Test(pool_quota, a_container_sees_its_own_group_as_the_root)
{
	v2("/");
	write_file("/sys/fs/cgroup/cpu.max", "250000 100000\n");
	expect_eq(tw__quota_cpus(root), 3);
}

Test(pool_quota, nothing_to_read_is_no_quota)
{
	static const char *const groups[] = {"",     "0::", "0::\n", "0\n", "4:cpu,cpuacct:/app\n",
					     "0::/", "::\n"};
	expect_eq(tw__quota_cpus(root), 0);
	write_file("/sys/fs/cgroup/cpu.max", "200000 100000\n");
	write_file("/sys/fs/cgroup/app/cpu.max", "200000 100000\n");
	expect_eq(tw__quota_cpus(root), 0);
	for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
		write_file("/proc/self/cgroup", groups[i]);
		expect_eq(tw__quota_cpus(root), 0);
	}
	v2("/none");
	expect_eq(tw__quota_cpus(root), 0);
}

Test(pool_quota, bounds_the_default_number_of_workers)
{
	unsigned quota = tw__quota_cpus(""), cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	expect_ge(tw__usable_cpus(), 1);
	expect_le(tw__usable_cpus(), quota ? quota : 1024);
	expect_eq(tw__cpus_within(4, 0), 4);
	expect_eq(tw__cpus_within(4, 2), 2);
	expect_eq(tw__cpus_within(4, 9), 4);
	expect_eq(tw__cpus_within(5000, 0), 1024);
	expect_ge(cpus, 1);
}
