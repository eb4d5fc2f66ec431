/*
 * A connection's state is what it has unread and unsent, and whether an answer is due. settle()
 * derives the timeouts from that. All of it runs on the loop's thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "examples/server/loop.h"

#define FLUSH_AT 65536

static void on_timeout(void *arg);

bool connection_init(struct connection *c, struct loop *loop)
{
	struct tw_task task = {.size = sizeof(task),
			       .fn = on_timeout,
			       .when_ns = TW_NEVER,
			       .flags = TW_TASK_PERSISTENT,
			       .executor = tw_manual_executor(loop->queue)};
	*c = (struct connection){.loop = loop, .fd = -1};
	for (unsigned kind = 0; kind < TIMEOUT_KINDS; kind++) {
		struct timeout *t = &c->timeouts[kind];
		t->connection = c;
		t->kind = kind;
		task.arg = t;
		if (tw_schedule_task(loop->server->service, &task, &t->timer) != 0)
			return false;
	}
	return true;
}

static void clear(struct connection *c, enum timeout_kind kind)
{
	struct timeout *t = &c->timeouts[kind];
	if (t->is_set)
		tw_disarm(c->loop->server->service, t->timer);
	t->is_set = false;
}

static bool is_set(const struct connection *c, enum timeout_kind kind)
{
	return c->timeouts[kind].is_set;
}

/* An answer is being made or sent: later requests wait. */
static bool is_busy(const struct connection *c)
{
	return is_set(c, TIMEOUT_ANSWER) || c->unsent.length > 0;
}

/* A connection without a timeout is not kept. */
static void set(struct connection *c, enum timeout_kind kind, uint64_t deadline_ns)
{
	struct timeout *t = &c->timeouts[kind];
	t->is_set = tw_reset_at(c->loop->server->service, t->timer, deadline_ns) == 0;
	if (!t->is_set)
		c->closing = true;
}

void connection_close(struct connection *c)
{
	for (unsigned kind = 0; kind < TIMEOUT_KINDS; kind++)
		clear(c, kind);
	close(c->fd);
	c->fd = -1;
	bytes_free(&c->unread);
	bytes_free(&c->unsent);
	c->next_free = c->loop->free;
	c->loop->free = c;
	count_up(&c->loop->figures.closed);
}

static bool watch(struct connection *c, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = c};
	int operation = c->watched == UINT32_MAX ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
	if (events == c->watched)
		return true;
	c->watched = events;
	return epoll_ctl(c->loop->epoll_fd, operation, c->fd, &event) == 0;
}

void connection_open(struct connection *c, int fd, uint64_t now_ns)
{
	c->fd = fd;
	c->closing = false;
	c->watched = UINT32_MAX;
	set(c, TIMEOUT_HEAD, now_ns + c->loop->server->limits.head_ns);
	if (c->closing || !watch(c, EPOLLIN))
		connection_close(c);
}

static void respond(struct connection *c, int status, const char *body, size_t length)
{
	if (!http_respond(&c->loop->output, status, !c->closing, body, length))
		c->closing = true;
}

static void respond_and_close(struct connection *c, int status)
{
	c->closing = true;
	respond(c, status, "", 0);
}

static ssize_t send_some(struct connection *c, const char *data, size_t length)
{
	ssize_t n = length > 0 ? send(c->fd, data, length, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
	if (n >= 0)
		return n;
	if (errno != EAGAIN && errno != EINTR)
		c->closing = true;
	return errno == EAGAIN || errno == EINTR ? 0 : (ssize_t)length;
}

/*
 * Sends what the loop has collected for the connection. If the kernel does not take all, the
 * connection stays busy.
 */
static void flush(struct connection *c)
{
	struct bytes *output = &c->loop->output;
	size_t sent = 0;
	if (c->unsent.length == 0)
		sent = (size_t)send_some(c, output->data, output->length);
	if (sent < output->length &&
	    !bytes_append(&c->unsent, output->data + sent, output->length - sent))
		c->closing = true;
	output->length = 0;
}

static void respond_with_page(struct connection *c, page_fn *write)
{
	char *text = NULL;
	size_t length = 0;
	if (page(c->loop->server, write, &text, &length))
		respond(c, 200, text, length);
	else
		respond_and_close(c, 503);
	free(text);
}

static void route(struct connection *c, const struct http_request *r)
{
	long slow_ms = http_number(r, "/slow", "ms");
	if (slow_ms >= 0) {
		set(c, TIMEOUT_ANSWER, c->loop->now_ns + (uint64_t)slow_ms * TW_MILLISECOND);
	} else if (http_path_is(r, "/stats")) {
		respond_with_page(c, report);
	} else if (http_path_is(r, "/metrics")) {
		respond_with_page(c, metrics);
	} else if (http_path_is(r, "/")) {
		respond(c, 200, "tick tock\n", 10);
	} else {
		respond(c, 404, "", 0);
	}
}

static void answer(struct connection *c, const struct http_request *r)
{
	count_up(&c->loop->figures.requests);
	clear(c, TIMEOUT_HEAD);
	c->closing = !r->keep_alive;
	set(c, TIMEOUT_REQUEST, c->loop->now_ns + c->loop->server->limits.request_ns);
	if (r->has_body)
		respond_and_close(c, 413);
	else if (!http_method_is(r, "GET"))
		respond_and_close(c, 405);
	else
		route(c, r);
}

static void reproach(struct connection *c)
{
	count_up(&c->loop->figures.malformed);
	respond_and_close(c, 400);
}

/* Which timeouts a connection has follows from what it is doing. */
static void settle(struct connection *c, bool served)
{
	const struct limits *limits = &c->loop->server->limits;
	uint64_t now_ns = c->loop->now_ns;
	if (is_busy(c)) {
		clear(c, TIMEOUT_IDLE);
		if (!is_set(c, TIMEOUT_REQUEST))
			set(c, TIMEOUT_REQUEST, now_ns + limits->request_ns);
		return;
	}
	clear(c, TIMEOUT_REQUEST);
	if (c->unread.length > 0) {
		clear(c, TIMEOUT_IDLE);
		if (!is_set(c, TIMEOUT_HEAD))
			set(c, TIMEOUT_HEAD, now_ns + limits->head_ns);
	} else if (served) {
		set(c, TIMEOUT_IDLE, now_ns + limits->idle_ns);
	}
}

static bool is_over(const struct connection *c)
{
	return c->closing && !is_busy(c);
}

/*
 * While a connection is busy, only errors and hang-ups of its client are watched: reading on would
 * be work without bound.
 */
static uint32_t events_wanted(const struct connection *c)
{
	if (!is_busy(c))
		return EPOLLIN;
	return c->unsent.length > 0 ? EPOLLOUT : 0;
}

/*
 * Answers the requests in data until one has to wait, and keeps the rest. `served`: an earlier one
 * has just been answered.
 */
static void serve(struct connection *c, const char *data, size_t length, bool served)
{
	size_t used = 0;
	while (!is_busy(c) && !c->closing && used < length) {
		struct http_request r;
		int head = http_parse(data + used, length - used, &r);
		if (head == HTTP_INCOMPLETE)
			break;
		if (head == HTTP_MALFORMED) {
			reproach(c);
			break;
		}
		answer(c, &r);
		used += (size_t)head;
		served = true;
		if (c->loop->output.length >= FLUSH_AT)
			flush(c);
	}
	flush(c);
	if (!bytes_keep(&c->unread, data + used, length - used))
		c->closing = true;
	if (!is_over(c))
		settle(c, served);
	if (is_over(c) || !watch(c, events_wanted(c)))
		connection_close(c);
}

/* Answers the requests that had to wait. */
static void resume(struct connection *c)
{
	serve(c, c->unread.length > 0 ? c->unread.data : "", c->unread.length, true);
}

static void on_readable(struct connection *c)
{
	char *input = c->loop->input;
	size_t kept = c->unread.length;
	if (kept > 0)
		memcpy(input, c->unread.data, kept);
	ssize_t n = recv(c->fd, input + kept, LOOP_INPUT - kept, MSG_DONTWAIT);
	if (n > 0)
		serve(c, input, kept + (size_t)n, false);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		connection_close(c);
}

static void on_writable(struct connection *c)
{
	ssize_t n = send_some(c, c->unsent.data, c->unsent.length);
	bytes_keep(&c->unsent, c->unsent.data + n, c->unsent.length - (size_t)n);
	resume(c);
}

void connection_on_event(struct connection *c, uint32_t events)
{
	if (is_busy(c) && (events & (EPOLLERR | EPOLLHUP)))
		connection_close(c);
	else if (is_busy(c))
		on_writable(c);
	else
		on_readable(c);
}

/* The answer of a client that does not read must not stay in the kernel: reset the connection. */
static void discard_unsent(struct connection *c)
{
	struct linger at_once = {.l_onoff = 1};
	setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

static void cut(struct connection *c, enum timeout_kind kind)
{
	if (c->unsent.length > 0)
		discard_unsent(c);
	else if (kind == TIMEOUT_REQUEST)
		respond_and_close(c, 503);
	else if (kind == TIMEOUT_HEAD && c->unread.length > 0)
		respond_and_close(c, 408);
	flush(c);
	connection_close(c);
}

static void on_answer_due(struct connection *c)
{
	respond(c, 200, "slow\n", 5);
	resume(c);
}

static void on_timeout(void *arg)
{
	struct timeout *t = arg;
	struct connection *c = t->connection;
	t->is_set = false;
	count_up(&c->loop->figures.timeouts[t->kind]);
	if (t->kind == TIMEOUT_ANSWER)
		on_answer_due(c);
	else
		cut(c, t->kind);
}
