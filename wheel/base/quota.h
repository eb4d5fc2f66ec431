/* How many processors the process's control groups allow it, on average. */
#ifndef TW_WHEEL_SERVICE_QUOTA_H
#define TW_WHEEL_SERVICE_QUOTA_H

/*
 * The CPU quota of the process's own control group and of those above it, in whole processors,
 * rounded up, at least 1. 0: no quota, or the system does not say. Control groups v2 (cpu.max) and
 * v1 (cpu.cfs_quota_us, cpu.cfs_period_us).
 *
 * Reads files under `root`, which is "" except in tests: /proc/self/cgroup, /proc/self/mountinfo,
 * and those of the groups.
 */
unsigned tw__quota_cpus(const char *root);

#endif
