/*
 * tickwheel-top asks, a thread of the service answers: one page for each connection, then the
 * connection is closed. The thread sleeps in accept until somebody asks, so a service that nobody
 * looks at costs nothing.
 *
 * The socket is named "tickwheel/PID/NUMBER" in Linux's abstract name space: it ends with the
 * process, and leaves no file behind. Such names have no permissions, so the thread asks the kernel
 * who has connected (SO_PEERCRED), and answers its own user and root.
 *
 * The page: "# tickwheel-top FORMAT", lines "# KEY VALUE" about the service, Prometheus' text with
 * the lines for viewers, "# EOF". A viewer reads a page of its own format only. Rejected: a page in
 * shared memory, which somebody would have to keep up to date whether or not anybody looks.
 */
#include "executor/monitor/publish.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "executor/monitor/prometheus.h"
#include "wheel/base/text.h"
#include "wheel/base/thread.h"

/* ------------------------------------------------------- the page for viewers */

static void function_label(struct tw__page *page, tw_fn *fn)
{
	char text[TW__FUNCTION_ROOM] = "";
	if (fn)
		tw__text_function(text, fn);
	tw__page_label(page, "fn", text);
}

static void write_ages(struct tw__page *page, const struct tw__reading *reading)
{
	uint64_t now_ns = reading->liveness.now_ns;
	tw__page_head(page, "run_age_seconds", "gauge",
		      "How long each user function has been running.");
	for (size_t i = 0; i < reading->run_count; i++) {
		const struct tw__seen_run *run = &reading->runs[i];
		tw__page_begin(page, reading, "run_age_seconds");
		tw__page_number_label(page, "run", i);
		tw__page_label(page, "kind", tw__run_kind_name(run->kind));
		tw__page_label(page, "name", run->name);
		function_label(page, run->fn);
		tw__page_number_label(page, "thread", run->thread_id);
		tw__page_time(page, now_ns > run->since_ns ? now_ns - run->since_ns : 0);
	}
}

/* The name and the function are those of the member that is due next, or of one that runs. */
static void write_groups(struct tw__page *page, const struct tw__reading *reading)
{
	uint64_t now_ns = reading->liveness.now_ns;
	const struct tw__seen_group *end = reading->groups + reading->group_count;
	tw__page_head(page, "largest_group_members", "gauge",
		      "Timers of the groups that have the most.");
	for (const struct tw__seen_group *group = reading->groups; group < end; group++) {
		tw__page_begin(page, reading, "largest_group_members");
		tw__page_number_label(page, "group", group->index);
		tw__page_label(page, "state", group->closed ? "closed" : "open");
		tw__page_label(page, "name", group->name);
		function_label(page, group->fn);
		tw__page_count(page, group->members);
	}
	tw__page_head(page, "largest_group_running", "gauge",
		      "Callbacks of these groups under way.");
	for (const struct tw__seen_group *group = reading->groups; group < end; group++) {
		tw__page_begin(page, reading, "largest_group_running");
		tw__page_number_label(page, "group", group->index);
		tw__page_count(page, group->running);
	}
	tw__page_head(page, "largest_group_due_seconds", "gauge", "When their next timer is due.");
	for (const struct tw__seen_group *group = reading->groups; group < end; group++) {
		if (group->due_ns == UINT64_MAX)
			continue;
		tw__page_begin(page, reading, "largest_group_due_seconds");
		tw__page_number_label(page, "group", group->index);
		tw__page_time(page, group->due_ns > now_ns ? group->due_ns - now_ns : 0);
	}
}

static void write_cells(struct tw__page *page, const struct tw__reading *reading)
{
	const struct tw_service_histograms *histograms = &reading->histograms;
	const struct {
		const char *of;
		const struct tw_histogram *histogram;
	} all[] = {{"lateness", &histograms->lateness},
		   {"wait", &histograms->wait},
		   {"run", &histograms->run}};
	tw__page_head(page, "cell", "gauge",
		      "Durations in each bucket of struct tw_histogram that is not empty.");
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		for (unsigned i = 0; i < TW_HISTOGRAM_BUCKETS; i++) {
			if (!all[k].histogram->buckets[i])
				continue;
			tw__page_begin(page, reading, "cell");
			tw__page_label(page, "of", all[k].of);
			tw__page_number_label(page, "bucket", i);
			tw__page_count(page, all[k].histogram->buckets[i]);
		}
}

/*
 * As tw_service_stats_prometheus. Adds a line for each run under way, for the largest groups, and
 * for each bucket of the distributions: for a monitor of many processes it would be too many
 * series.
 */
static int viewers_write(tw_service *service, FILE *out)
{
	struct tw__reading *reading = calloc(1, sizeof *reading);
	if (!reading)
		return -ENOMEM;
	int r = tw__reading_take(service, reading, true);
	if (!r) {
		struct tw__page page = {.out = out, .readings = reading, .count = 1};
		tw__prometheus_figures(&page);
		write_ages(&page, reading);
		write_groups(&page, reading);
		write_cells(&page, reading);
	}
	tw__reading_free(reading);
	free(reading);
	return r ? r : ferror(out) ? -EIO : 0;
}

enum { PAGE_FORMAT = 1, VIEWERS_WAITING = 8, NAME_ROOM = 64 };

struct tw__publisher {
	tw_service *service;
	int fd;
	pthread_t thread;
	_Atomic bool ended;
	char name[NAME_ROOM];
};

/* ------------------------------------------------------------------ answers */

static bool is_permitted(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof peer;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		return false;
	return peer.uid == geteuid() || peer.uid == 0;
}

static bool write_page(struct tw__publisher *publisher, FILE *out)
{
	fprintf(out, "# tickwheel-top %d\n# service ", PAGE_FORMAT);
	tw__text_put(out, publisher->name, TW__TEXT_PLAIN);
	fputc('\n', out);
	int r = viewers_write(publisher->service, out);
	fputs("# EOF\n", out);
	return r == 0;
}

static void send_all(int fd, const char *text, size_t length)
{
	for (size_t sent = 0; sent < length;) {
		ssize_t n = send(fd, text + sent, length - sent, MSG_NOSIGNAL);
		if (n <= 0 && errno != EINTR)
			return;
		sent += n > 0 ? (size_t)n : 0;
	}
}

static void answer(struct tw__publisher *publisher, int fd)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = is_permitted(fd) ? open_memstream(&text, &length) : NULL;
	if (!out)
		return;
	bool written = write_page(publisher, out);
	if (fclose(out) == 0 && written) {
		/* a viewer that does not read must not hold up the others, or a destroy */
		const struct timeval limit = {.tv_usec = 200000};
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
		send_all(fd, text, length);
	}
	free(text);
}

/* No descriptor or no memory for a viewer: there may be some a moment later. */
static bool is_short_of_room(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static void *publisher_main(void *arg)
{
	struct tw__publisher *publisher = arg;
	const struct timespec moment = {.tv_nsec = 100000000};
	while (!tw_load_acquire(&publisher->ended)) {
		int fd = accept4(publisher->fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0) {
			answer(publisher, fd);
			close(fd);
		} else if (is_short_of_room(errno)) {
			nanosleep(&moment, NULL);
		} else if (errno != EINTR && errno != ECONNABORTED) {
			break; /* shut down */
		}
	}
	return NULL;
}

/* ---------------------------------------------------------------- beginning */

static int listen_as(pid_t pid, uint32_t number)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "tickwheel/%d/%u",
			      (int)pid, number);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address, size) == 0 &&
	    listen(fd, VIEWERS_WAITING) == 0)
		return fd;
	int error = errno;
	close(fd);
	return -error;
}

static int monitor_start(struct tw__publisher *publisher)
{
	static _Atomic uint32_t numbers;
	const struct tw_service_config threads = {.thread_name = "tw"};
	publisher->fd = listen_as(getpid(), tw_add_relaxed(&numbers, 1));
	if (publisher->fd < 0)
		return publisher->fd;
	int r = tw__spawn(&publisher->thread, &threads, "-top", false, publisher_main, publisher);
	if (r)
		close(publisher->fd);
	return r;
}

static void monitor_stop(struct tw__publisher *publisher)
{
	tw_store_release(&publisher->ended, true);
	shutdown(publisher->fd, SHUT_RDWR); /* accept returns */
	pthread_join(publisher->thread, NULL);
	close(publisher->fd);
}

static int monitor_publish(tw_service *service, const char *name)
{
	struct tw__publisher *publisher = calloc(1, sizeof *publisher);
	if (!publisher)
		return -ENOMEM;
	publisher->service = service;
	if (!name)
		name = service->config.name ? service->config.name : "service";
	strncpy(publisher->name, name, NAME_ROOM - 1);
	int r = monitor_start(publisher);
	if (r) {
		free(publisher);
		return r;
	}
	struct tw__publisher *none = NULL;
	if (tw_cas_acq_rel(&service->layers.publisher, &none, publisher))
		return 0;
	monitor_stop(publisher);
	free(publisher);
	return -EALREADY;
}

int tw_service_publish(tw_service *service, const char *name)
{
	int r = tw__service_check(service);
	if (!r && tw__gate_refuses(tw__gate_look(&service->gate)))
		r = -ESHUTDOWN;
	if (!r && tw_load_relaxed(&service->layers.publisher))
		r = -EALREADY;
	if (!r)
		r = monitor_publish(service, name);
	return r == -EALREADY
		   ? tw__misuse(r, "tw_service_publish: the service is published already")
		   : r;
}

/* ---------------------------------------------------------------------- end */

void tw__unpublish(tw_service *service)
{
	struct tw__publisher *publisher = tw_load_acquire(&service->layers.publisher);
	if (!publisher)
		return;
	monitor_stop(publisher);
	free(publisher);
	tw_store_relaxed(&service->layers.publisher, NULL);
}

void tw__unpublish_forked(tw_service *service)
{
	struct tw__publisher *publisher = tw_load_relaxed(&service->layers.publisher);
	if (!publisher)
		return;
	close(publisher->fd);
	free(publisher);
}
