#include "bench/viewer.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct viewer {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool ended;
	unsigned number;     /* of the service's socket */
	unsigned long bytes; /* of the last page */
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

/* Half a second, unless the viewer ends. The lock is held. */
static void rest(struct viewer *viewer)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += 500000000;
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
		rest(viewer);
	} while (!viewer->ended);
	pthread_mutex_unlock(&viewer->lock);
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

struct viewer *viewer_start(tw_service *service)
{
	static unsigned published; /* the library numbers its sockets in the same way */
	struct viewer *viewer = calloc(1, sizeof *viewer);
	if (!viewer || tw_service_publish(service, NULL) < 0) {
		free(viewer);
		return NULL;
	}
	viewer->number = published++;
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
	free(viewer);
}
