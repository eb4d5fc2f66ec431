/*
 * The default number of workers: processors, and the CPU quotas of control groups, from files that
 * the test writes.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/support/expect.h"
#include "wheel/base/quota.h"
#include "wheel/base/thread.h"

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

static const char v2_mount[] =
    "23 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "31 23 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

static void v2(const char *group)
{
	char line[256];
	snprintf(line, sizeof line, "0::%s\n", group);
	write_file("/proc/self/mountinfo", v2_mount);
	write_file("/proc/self/cgroup", line);
}

static void v1(const char *group)
{
	char lines[256];
	snprintf(lines, sizeof lines,
		 "12:cpuset:/elsewhere\n4:cpu,cpuacct:%s\n1:name=systemd:/\n0::/\n", group);
	write_file("/proc/self/mountinfo",
		   "32 23 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
		   "33 23 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
	write_file("/proc/self/cgroup", lines);
}

static unsigned v2_with(const char *text)
{
	v2("/pod/app");
	write_file("/sys/fs/cgroup/pod/app/cpu.max", text);
	return tw__quota_cpus(root);
}

Test(pool_quota, v2_is_rounded_up_and_at_least_one)
{
	expect_eq(v2_with("200000 100000\n"), 2);
	expect_eq(v2_with("200001 100000\n"), 3);
	expect_eq(v2_with("150000 100000\n"), 2);
	expect_eq(v2_with("1000 100000\n"), 1);
	expect_eq(v2_with("100000 50000\n"), 2);
}

Test(pool_quota, v2_without_a_limit_or_unreadable_is_none)
{
	expect_eq(v2_with("max 100000\n"), 0);
	expect_eq(v2_with(""), 0);
	expect_eq(v2_with("200000\n"), 0);
	expect_eq(v2_with("-1 100000\n"), 0);
	expect_eq(v2_with("0 0\n"), 0);
	expect_eq(v2_with("many 100000\n"), 0);
}

Test(pool_quota, the_smallest_of_the_group_and_those_above_it_counts)
{
	v2("/pod/app/worker");
	expect_eq(tw__quota_cpus(root), 0);
	write_file("/sys/fs/cgroup/pod/cpu.max", "300000 100000\n");
	expect_eq(tw__quota_cpus(root), 3);
	write_file("/sys/fs/cgroup/pod/app/cpu.max", "max 100000\n");
	write_file("/sys/fs/cgroup/pod/app/worker/cpu.max", "500000 100000\n");
	expect_eq(tw__quota_cpus(root), 3);
	write_file("/sys/fs/cgroup/pod/other/cpu.max", "100000 100000\n"); /* another group's */
	expect_eq(tw__quota_cpus(root), 3);
	write_file("/sys/fs/cgroup/pod/app/worker/cpu.max", "200000 100000\n");
	expect_eq(tw__quota_cpus(root), 2);
}

Test(pool_quota, a_container_sees_its_own_group_as_the_root)
{
	v2("/");
	write_file("/sys/fs/cgroup/cpu.max", "250000 100000\n");
	expect_eq(tw__quota_cpus(root), 3);
	v2("/../../host"); /* outside of what the namespace shows */
	expect_eq(tw__quota_cpus(root), 3);
}

Test(pool_quota, a_mount_may_show_a_group_below_the_root)
{
	write_file("/proc/self/cgroup", "0::/docker/abc/app\n");
	write_file("/proc/self/mountinfo",
		   "31 23 0:27 /docker/abc /sys/fs/cg\\040roup rw - cgroup2 cgroup2 rw\n");
	write_file("/sys/fs/cg roup/cpu.max", "400000 100000\n");
	expect_eq(tw__quota_cpus(root), 4);
	write_file("/sys/fs/cg roup/app/cpu.max", "100000 100000\n");
	expect_eq(tw__quota_cpus(root), 1);
	write_file("/proc/self/cgroup", "0::/docker/abcdef/app\n"); /* another one */
	expect_eq(tw__quota_cpus(root), 4);
}

Test(pool_quota, v1_reads_quota_and_period_of_the_cpu_controller)
{
	v1("/pod/app");
	expect_eq(tw__quota_cpus(root), 0);
	write_file("/sys/fs/cgroup/cpu,cpuacct/pod/app/cpu.cfs_quota_us", "-1\n");
	write_file("/sys/fs/cgroup/cpu,cpuacct/pod/app/cpu.cfs_period_us", "100000\n");
	expect_eq(tw__quota_cpus(root), 0);
	write_file("/sys/fs/cgroup/cpu,cpuacct/pod/app/cpu.cfs_quota_us", "120000\n");
	expect_eq(tw__quota_cpus(root), 2);
	write_file("/sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_quota_us", "50000\n");
	write_file("/sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_period_us", "50000\n");
	expect_eq(tw__quota_cpus(root), 1);
	/* of another controller */
	write_file("/sys/fs/cgroup/cpuset/elsewhere/cpu.cfs_quota_us", "1\n");
	expect_eq(tw__quota_cpus(root), 1);
}

Test(pool_quota, nothing_to_read_is_no_quota)
{
	expect_eq(tw__quota_cpus(root), 0);
	write_file("/proc/self/cgroup", "0::/\n");
	expect_eq(tw__quota_cpus(root), 0);
	write_file("/proc/self/mountinfo", "31 23\nno mount at all - \n - cgroup2\n");
	expect_eq(tw__quota_cpus(root), 0);
	write_file("/proc/self/mountinfo", v2_mount);
	write_file("/proc/self/cgroup", "0\n::\n");
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
