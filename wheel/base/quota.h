/* How many processors the process's control group allows it, on average. */
#ifndef TW_WHEEL_SERVICE_QUOTA_H
#define TW_WHEEL_SERVICE_QUOTA_H

/*
 * The CPU quota of the process's own control group (v2, cpu.max), in whole processors, rounded up,
 * at least 1. 0: no quota, or the system does not say. A quota of a group above it does not count.
 *
 * Reads files under `root`, which is "" except in tests: /proc/self/cgroup, and cpu.max of the
 * group under /sys/fs/cgroup.
 */
unsigned tw__quota_cpus(const char *root);

#endif
