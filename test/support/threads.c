/* Looks at /proc. */
#include "threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *note_id(void *id)
{
	*(long *)id = syscall(SYS_gettid);
	return NULL;
}

/*
 * ThreadSanitizer has a thread of its own from the first pthread_create on, so the first call makes
 * one. The kernel may list that one for a moment after the join.
 */
static void make_first_thread(void)
{
	static bool made;
	pthread_t first;
	long id = 0;
	char path[64];
	if (made || pthread_create(&first, NULL, note_id, &id) != 0)
		return;
	made = true;
	pthread_join(first, NULL);
	snprintf(path, sizeof path, "/proc/self/task/%ld", id);
	while (access(path, F_OK) == 0)
		sched_yield();
}

int threads_alive(void)
{
	int n = 0;
	make_first_thread();
	DIR *tasks = opendir("/proc/self/task");
	for (struct dirent *d; (d = readdir(tasks));)
		n += d->d_name[0] != '.';
	closedir(tasks);
	return n;
}

bool thread_is_runnable(long id)
{
	char path[48], text[128];
	snprintf(path, sizeof path, "/proc/self/task/%ld/stat", id);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	const char *name_end = strrchr(text, ')'); /* "123 (tw-0) R ..." */
	return name_end && name_end[1] && name_end[2] == 'R';
}

int threads_runnable(void)
{
	int n = 0;
	DIR *tasks = opendir("/proc/self/task");
	for (struct dirent *d; (d = readdir(tasks));)
		n += d->d_name[0] != '.' && thread_is_runnable(atol(d->d_name));
	closedir(tasks);
	return n;
}

int descriptors_open(void)
{
	int n = 0;
	DIR *all = opendir("/proc/self/fd");
	for (struct dirent *d; (d = readdir(all));)
		n += d->d_name[0] != '.';
	closedir(all);
	return n;
}

int64_t resident_bytes(void)
{
	long pages = 0;
	FILE *statm = fopen("/proc/self/statm", "r");
	if (!statm || fscanf(statm, "%*s %ld", &pages) != 1)
		abort();
	fclose(statm);
	return pages * sysconf(_SC_PAGESIZE);
}
