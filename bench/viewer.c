#include "bench/viewer.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { LOOKS_A_SECOND = 2 };

/* Of all viewers until now. Runs are processes of their own, one after the other. */
static struct total {
	uint64_t looks, answering_ns, reading_ns;
} * total;

struct viewer {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool ended;
	unsigned number;     /* of the service's socket */
	unsigned long bytes; /* of the last page */
	unsigned long looks;
	uint64_t cpu_ns; /* of this thread */
	long answering;  /* the service's thread that answers */
};

static int connect_to(unsigned number)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "tickwheel/%d/%u",
			      (int)getpid(), number);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, size) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static unsigned long read_page(unsigned number)
{
	static char text[1 << 16];
	unsigned long bytes = 0;
	int fd = connect_to(number);
	for (ssize_t n; fd >= 0 && (n = recv(fd, text, sizeof text, 0)) > 0;)
		bytes += (unsigned long)n;
	if (fd >= 0)
		close(fd);
	return bytes;
}

/* Until the next look, unless the viewer ends. The lock is held. */
static void rest(struct viewer *viewer)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += 1000000000 / LOOKS_A_SECOND;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (!viewer->ended &&
	       pthread_cond_timedwait(&viewer->changed, &viewer->lock, &until) != ETIMEDOUT)
		continue;
}

static void *look(void *arg)
{
	struct viewer *viewer = arg;
	pthread_mutex_lock(&viewer->lock);
	do {
		pthread_mutex_unlock(&viewer->lock);
		unsigned long bytes = read_page(viewer->number);
		pthread_mutex_lock(&viewer->lock);
		viewer->bytes = bytes;
		viewer->looks++;
		rest(viewer);
	} while (!viewer->ended);
	pthread_mutex_unlock(&viewer->lock);
	struct timespec cpu;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	viewer->cpu_ns = (uint64_t)cpu.tv_sec * 1000000000 + (uint64_t)cpu.tv_nsec;
	return NULL;
}

static void init_sync(struct viewer *viewer)
{
	pthread_condattr_t attr;
	pthread_mutex_init(&viewer->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&viewer->changed, &attr);
	pthread_condattr_destroy(&attr);
}

/* The numbers of this process's threads, added up: a new thread adds its own. */
static long sum_of_threads(void)
{
	long sum = 0;
	DIR *threads = opendir("/proc/self/task");
	for (struct dirent *entry; threads && (entry = readdir(threads));)
		sum += strtol(entry->d_name, NULL, 10);
	if (threads)
		closedir(threads);
	return sum;
}

/* 0 where the kernel does not say it. */
static uint64_t cpu_of(long thread)
{
	char path[64];
	unsigned long long ns = 0;
	snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", thread);
	FILE *in = fopen(path, "r");
	if (in && fscanf(in, "%llu", &ns) != 1)
		ns = 0;
	if (in)
		fclose(in);
	return ns;
}

bool viewers_share(void)
{
	total =
	    mmap(NULL, sizeof *total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return total != MAP_FAILED;
}

struct viewer *viewer_start(tw_service *service)
{
	static unsigned published; /* the library numbers its sockets in the same way */
	struct viewer *viewer = calloc(1, sizeof *viewer);
	long threads = sum_of_threads();
	if (!viewer || tw_service_publish(service, NULL) < 0) {
		free(viewer);
		return NULL;
	}
	viewer->number = published++;
	viewer->answering = sum_of_threads() - threads;
	init_sync(viewer);
	if (pthread_create(&viewer->thread, NULL, look, viewer) == 0)
		return viewer;
	free(viewer);
	return NULL;
}

void viewer_stop(struct viewer *viewer)
{
	if (!viewer)
		return;
	pthread_mutex_lock(&viewer->lock);
	viewer->ended = true;
	pthread_cond_signal(&viewer->changed);
	pthread_mutex_unlock(&viewer->lock);
	pthread_join(viewer->thread, NULL);
	if (viewer->bytes < 1000) {
		fprintf(stderr, "bench: the viewer read no page\n");
		abort();
	}
	total->looks += viewer->looks;
	total->answering_ns += cpu_of(viewer->answering);
	total->reading_ns += viewer->cpu_ns;
	free(viewer);
}

void viewer_report(FILE *out)
{
	if (total->looks == 0)
		return;
	double looks = (double)total->looks;
	double us = (double)total->answering_ns / 1e3 / looks;
	fprintf(
	    out,
	    "viewer       %.0f looks took %.0f us of the service's CPU time each, and %.0f us of "
	    "the viewer's:\n"
	    "             at %d a second %.3f %% of a processor, and %.3f %%\n",
	    looks, us, (double)total->reading_ns / 1e3 / looks, LOOKS_A_SECOND,
	    us * LOOKS_A_SECOND / 1e4, (double)total->reading_ns / 1e7 / looks * LOOKS_A_SECOND);
}
