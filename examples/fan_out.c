/*
 * Fetches many pages from a server that dies meanwhile: at most eight requests at a time, a time
 * limit for each attempt, and retries whose delays grow and are spread by jitter.
 *
 * The server is examples/server, found beside this program. It is killed, and started again on its
 * port a moment later. At the end every page must have been fetched: the exit status says so.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tickwheel.h"

enum { PAGES = 400, KILL_AFTER = 120, CONNECTIONS = 8 };

struct page {
	atomic_int fd;     /* of the attempt under way; -1: none */
	uint32_t attempts; /* written by done, as the members that follow */
	bool fetched;
};

static struct page pages[PAGES];
static atomic_int settled;
static atomic_uint port;

/* -------------------------------------------------------------- the server */

static char server_path[4096];
static pid_t server;

static void become_server(int out)
{
	char number[16];
	snprintf(number, sizeof(number), "%u", atomic_load(&port));
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not outlive us */
	dup2(out, STDOUT_FILENO);
	execl(server_path, server_path, "--port", number, (char *)NULL);
	perror(server_path);
	_exit(127);
}

/* Returns when it listens. */
static bool start_server(void)
{
	static const char says[] = "listening on 127.0.0.1:";
	int ends[2];
	char line[128] = "";
	if (pipe(ends) != 0 || (server = fork()) < 0)
		return false;
	if (server == 0)
		become_server(ends[1]);
	close(ends[1]);
	FILE *output = fdopen(ends[0], "r");
	while (output && fgets(line, sizeof(line), output) && !strstr(line, says)) {
	}
	char *at = strstr(line, says);
	if (at)
		atomic_store(&port, (unsigned)atoi(at + strlen(says)));
	return at != NULL; /* the pipe stays open: the server may write into it */
}

static void end_server(int signal)
{
	kill(server, signal);
	waitpid(server, NULL, 0);
}

/* -------------------------------------------------------------- one request */

static int connect_to_server(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)atomic_load(&port)),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd < 0 ? -errno : fd;
	int error = -errno;
	close(fd);
	return error;
}

/* Sends a request, and reads until the server closes. 0: a good answer is complete. */
static int talk(int fd)
{
	static const char request[] =
	    "GET /slow?ms=5 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
	char answer[1024];
	size_t length = 0;
	ssize_t n;
	if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) < 0)
		return -errno;
	while (length < sizeof(answer) - 1 &&
	       (n = recv(fd, answer + length, sizeof(answer) - 1 - length, 0)) != 0) {
		if (n < 0)
			return -errno;
		length += (size_t)n;
	}
	answer[length] = 0;
	return strncmp(answer, "HTTP/1.1 200", 12) == 0 && strstr(answer, "\r\n\r\n") ? 0 : -EPROTO;
}

/* The job: one attempt. It may block, since the pool has a worker for each permit. */
static int fetch(void *arg, struct tw_job_run *run)
{
	struct page *page = arg;
	int fd = connect_to_server();
	if (fd < 0)
		return fd;
	atomic_store(&page->fd, fd);
	int r = tw_job_is_cancelled(run->limiter, run->job) ? -ETIMEDOUT : talk(fd);
	int mine = fd;
	/* `stop` uses it for a moment */
	while (!atomic_compare_exchange_weak(&page->fd, &mine, -1))
		mine = fd;
	close(fd);
	return r;
}

/* The attempt has timed out: ends what it waits for on its connection. */
static void stop(void *arg, tw_job job, enum tw_job_status why)
{
	struct page *page = arg;
	(void)job;
	(void)why;
	int fd = atomic_load(&page->fd);
	if (fd >= 0 && atomic_compare_exchange_strong(&page->fd, &fd, -2)) {
		shutdown(fd, SHUT_RDWR);
		atomic_store(&page->fd, fd);
	}
}

static void done(void *arg, const struct tw_job_result *result)
{
	struct page *page = arg;
	page->attempts = result->attempts;
	page->fetched = result->status == TW_JOB_STATUS_SUCCEEDED;
	atomic_fetch_add(&settled, 1);
}

static bool submit(tw_limiter *limiter, struct page *page)
{
	struct tw_limiter_task task = {
	    .size = sizeof(task),
	    .fn = fetch,
	    .arg = page,
	    .done = done,
	    .stop = stop,
	    .attempt_timeout_ns = 500 * TW_MILLISECOND,
	    .retry = {.count = 30,
		      .delay_ns = 40 * TW_MILLISECOND,
		      .factor_x100 = 150,
		      .cap_ns = 200 * TW_MILLISECOND,
		      .jitter = TW_RETRY_JITTER_FULL},
	};
	atomic_store(&page->fd, -1);
	return tw_limiter_submit_task(limiter, &task, NULL) == 0;
}

/* ----------------------------------------------------------------- progress */

static void show(tw_limiter *limiter, const char *what)
{
	struct tw_limiter_stats stats = {.size = sizeof(stats)};
	char bar[41];
	tw_limiter_stats(limiter, &stats);
	int filled = (int)(stats.succeeded * 40 / PAGES);
	memset(bar, '.', 40);
	memset(bar, '#', (size_t)filled);
	bar[40] = 0;
	printf("%s[%s] %3llu of %d, %llu at work, %llu to be tried again%s%s",
	       isatty(1) ? "\r" : "", bar, (unsigned long long)stats.succeeded, PAGES,
	       (unsigned long long)stats.running, (unsigned long long)stats.retrying, what,
	       isatty(1) && !*what ? "" : "\n");
	fflush(stdout);
}

/* Waits until all jobs have settled, and kills the server on the way. */
static bool watch(tw_limiter *limiter)
{
	bool killed = false;
	while (tw_limiter_wait_idle(limiter, 50 * TW_MILLISECOND) == -ETIMEDOUT) {
		show(limiter, "");
		if (killed || atomic_load(&settled) < KILL_AFTER)
			continue;
		end_server(SIGKILL);
		show(limiter, "  the server is dead");
		tw_limiter_wait_idle(limiter, 200 * TW_MILLISECOND);
		show(limiter, "  it starts again");
		if (!start_server())
			return false;
		killed = true;
	}
	show(limiter, "  done");
	return killed;
}

static int verdict(tw_limiter *limiter)
{
	struct tw_limiter_stats stats = {.size = sizeof(stats)};
	int fetched = 0, again = 0;
	for (int i = 0; i < PAGES; i++) {
		fetched += pages[i].fetched;
		again += pages[i].attempts > 1;
	}
	tw_limiter_stats(limiter, &stats);
	printf("%d of %d pages fetched, %d of them not at the first attempt; %llu attempts were "
	       "repeated\n",
	       fetched, PAGES, again, (unsigned long long)stats.retried);
	return fetched == PAGES && atomic_load(&settled) == PAGES ? 0 : 1;
}

int main(int argc, char **argv)
{
	tw_service *service;
	tw_pool *pool;
	tw_limiter *limiter;
	const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
	snprintf(server_path, sizeof(server_path), "%.*sserver",
		 slash ? (int)(slash - argv[0] + 1) : 0, argv[0]);
	if (!start_server()) {
		fprintf(stderr, "fan_out: no server at %s (make demo builds it)\n", server_path);
		return 1;
	}
	struct tw_pool_config workers = {.size = sizeof(workers), .workers = CONNECTIONS};
	if (tw_service_create(&service, NULL) != 0 || tw_pool_create(&pool, &workers) != 0)
		return 1;
	struct tw_limiter_config config = {.size = sizeof(config),
					   .max_concurrency = CONNECTIONS,
					   .executor = tw_pool_executor(pool)};
	if (tw_limiter_create(&limiter, service, &config) != 0)
		return 1;
	for (int i = 0; i < PAGES; i++) {
		if (!submit(limiter, &pages[i]))
			return 1;
	}
	bool survived = watch(limiter);
	int status = verdict(limiter);
	tw_limiter_destroy(limiter);
	tw_pool_destroy(pool);
	tw_service_destroy(service);
	end_server(SIGTERM);
	return survived ? status : 1;
}
