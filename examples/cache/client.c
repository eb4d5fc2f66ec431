#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "examples/cache/cache.h"
#include "examples/cache/client.h"
#include "examples/cache/commands.h"
#include "examples/cache/loop.h"
#include "examples/cache/pubsub.h"
#include "examples/cache/reply.h"
#include "examples/cache/table.h"

#define READ_SIZE (16 * 1024)
#define READ_MOST (1024 * 1024)
#define SHORT_REQUEST 6 /* arguments */

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct client *registry;

/* ------------------------------------------------------------------ life */

struct client *client_open(struct loop *loop, int fd, const char *peer)
{
	struct client *c = allocate(sizeof(*c));
	*c = (struct client){.loop = loop, .fd = fd, .made_ns = tw_service_now(cache.service)};
	c->id = atomic_fetch_add_explicit(&cache.next_client_id, 1, memory_order_relaxed) + 1;
	atomic_init(&c->seen_ns, c->made_ns);
	snprintf(c->peer, sizeof(c->peer), "%s", peer);
	resp_init(&c->parser);
	c->parser.max_bulk = (int64_t)cache.max_bulk;
	pthread_mutex_lock(&registry_lock);
	c->next = registry;
	if (registry != NULL)
		registry->previous = c;
	registry = c;
	pthread_mutex_unlock(&registry_lock);
	loop_watch(c, EPOLLIN);
	return c;
}

void client_close(struct client *c)
{
	pubsub_leave(c);
	pthread_mutex_lock(&registry_lock);
	*(c->previous != NULL ? &c->previous->next : &registry) = c->next;
	if (c->next != NULL)
		c->next->previous = c->previous;
	pthread_mutex_unlock(&registry_lock);
	atomic_fetch_sub_explicit(&cache.clients, 1, memory_order_relaxed);
	close(c->fd);
	resp_free(&c->parser);
	buffer_free(&c->in);
	buffer_free(&c->out);
	free(c->name);
	free(c->library);
	free(c->library_version);
	free(c);
}

/* ------------------------------------------------------------------ output */

/* Sends what the peer takes, and counts that in *sent. False: the peer is gone. */
static bool send_bytes(struct client *c, struct slice bytes, size_t *sent)
{
	*sent = 0;
	while (*sent < bytes.length) {
		ssize_t n = send(c->fd, bytes.data + *sent, bytes.length - *sent, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK;
		figure_add(&c->loop->figures.output_bytes, (uint64_t)n);
		*sent += (size_t)n;
	}
	return true;
}

/* Sends what it can of the client's own output. False: the peer is gone. */
static bool send_some(struct client *c)
{
	size_t sent;
	bool alive = send_bytes(c, buffer_part(&c->out, 0, buffer_length(&c->out)), &sent);
	buffer_take(&c->out, sent);
	return alive;
}

/* Sends replies; what the peer does not take waits in the client's own output. */
static bool send_replies(struct client *c, struct slice replies)
{
	size_t sent;
	bool alive = send_bytes(c, replies, &sent);
	if (alive)
		buffer_add(&c->out, replies.data + sent, replies.length - sent);
	return alive;
}

/* Sends the replies that wait, and then the mail. */
static bool send_waiting(struct client *c)
{
	do {
		if (!send_some(c))
			return false;
		if (buffer_length(&c->out) > 0)
			return true;
	} while (pubsub_collect(c) && buffer_length(&c->out) > 0);
	buffer_rest(&c->out);
	return true;
}

/* ------------------------------------------------------------------ input */

/*
 * Begins to load the keys of the requests at the start of the bytes, so that the requests wait for
 * memory together. How many bytes they are. Nothing depends on what is found here.
 */
static size_t look_ahead(struct loop *l, const char *data, size_t length)
{
	struct slice keys[KEYS_PREFETCHED];
	size_t count = 0, used = 0;
	while (count < KEYS_PREFETCHED &&
	       resp_parse(&l->ahead, data + used, length - used) == RESP_READY) {
		used += l->ahead.used;
		if (l->ahead.argc > 1 && !l->ahead.inlined)
			keys[count++] = l->ahead.argv[1];
		resp_next(&l->ahead);
	}
	resp_next(&l->ahead);
	keys_prefetch_unlocked(keys, count);
	return used;
}

/*
 * Runs the whole requests at the start of the bytes, while their replies are short. How many bytes
 * they were.
 */
static size_t run_requests(struct client *c, const char *data, size_t length)
{
	size_t used = 0, ahead = 0;
	bool is_short = false; /* the request before: after a long one, to look ahead costs more */
	while (!c->closing && buffer_length(c->reply) - c->reply_start < CLIENT_PAUSE_OUTPUT) {
		if (is_short && used >= ahead && used < length)
			ahead = used + look_ahead(c->loop, data + used, length - used);
		enum resp_answer answer = resp_parse(&c->parser, data + used, length - used);
		if (answer == RESP_MORE)
			break;
		if (answer == RESP_ERROR) {
			figure_add(&c->loop->figures.protocol_errors, 1);
			reply_error(c->reply, "ERR %s", c->parser.error);
			c->closing = true;
			break;
		}
		used += c->parser.used;
		is_short = c->parser.argc <= SHORT_REQUEST;
		if (c->parser.argc > 0)
			command_run(c, c->parser.argv, c->parser.argc);
		resp_next(&c->parser);
	}
	return used;
}

/* Runs what can be run of the client's own input. */
static void run_waiting_input(struct client *c)
{
	if (buffer_length(&c->in) == 0)
		return;
	buffer_take(&c->in, run_requests(c, c->in.data + c->in.start, buffer_length(&c->in)));
	buffer_rest(&c->in);
}

/* Reads into the loop's buffer; only what is no whole request is copied to the client's own. */
static ssize_t read_fresh(struct client *c)
{
	char *input = c->loop->input;
	ssize_t n = recv(c->fd, input, LOOP_INPUT, 0);
	if (n > 0) {
		size_t used = run_requests(c, input, (size_t)n);
		buffer_add(&c->in, input + used, (size_t)n - used);
	}
	return n;
}

static ssize_t read_more(struct client *c)
{
	size_t size = resp_expected(&c->parser, buffer_length(&c->in));
	size = size < READ_SIZE ? READ_SIZE : size < READ_MOST ? size : READ_MOST;
	ssize_t n = recv(c->fd, buffer_reserve(&c->in, size), size, 0);
	if (n > 0) {
		c->in.end += (size_t)n;
		run_waiting_input(c);
	}
	return n;
}

/* False: the client must go. */
static bool read_some(struct client *c)
{
	ssize_t n = buffer_length(&c->in) == 0 ? read_fresh(c) : read_more(c);
	if (n > 0)
		figure_add(&c->loop->figures.input_bytes, (uint64_t)n);
	if (n == 0 || buffer_length(&c->in) > CLIENT_MAX_INPUT)
		return false;
	return n > 0 || errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* Replies that nothing waits ahead of go to the loop's output. */
static void begin_replies(struct client *c)
{
	bool waits = buffer_length(&c->out) > 0;
	c->reply = waits ? &c->out : &c->loop->output;
	c->reply_start = waits ? 0 : buffer_length(c->reply);
}

/* ------------------------------------------------------------------ events */

/* Requests may wait in the input because the output was long: no event will tell of them. */
static bool resume(struct client *c)
{
	while (buffer_length(&c->out) == 0 && buffer_length(&c->in) > 0 && !c->closing) {
		size_t before = buffer_length(&c->in);
		c->reply = &c->out;
		c->reply_start = 0;
		run_waiting_input(c);
		if (!send_some(c))
			return false;
		if (buffer_length(&c->in) == before)
			break;
	}
	return true;
}

/* Ends an event: asks epoll for what comes next, or closes. */
static void settle(struct client *c, bool alive)
{
	size_t waiting = buffer_length(&c->out);
	if (!alive || (c->closing && waiting == 0)) {
		client_close(c);
		return;
	}
	bool reads = waiting < CLIENT_PAUSE_OUTPUT && !c->closing;
	loop_watch(c, (reads ? EPOLLIN : 0) | (waiting > 0 ? EPOLLOUT : 0));
}

bool client_event(struct client *c, uint32_t events)
{
	bool alive = true;
	atomic_store_explicit(&c->seen_ns, c->loop->now_ns, memory_order_relaxed);
	if (events & EPOLLOUT)
		alive = send_waiting(c) && resume(c);
	if (alive && (events & EPOLLIN) && buffer_length(&c->out) < CLIENT_PAUSE_OUTPUT) {
		begin_replies(c);
		alive = read_some(c);
	}
	/* The peer is gone: the replies that wait cannot be sent. */
	return alive && (events & (EPOLLERR | EPOLLHUP)) == 0;
}

void client_answer(struct client *c, struct slice replies, bool stays)
{
	bool alive = send_replies(c, replies);
	settle(c, alive && stays && resume(c));
}

void client_mail(struct client *c)
{
	bool in_bounds = pubsub_collect(c);
	if (!in_bounds)
		figure_add(&c->loop->figures.slow_subscribers, 1);
	settle(c, in_bounds && send_waiting(c) && resume(c));
}

void client_finish(struct client *c)
{
	if (!send_waiting(c) || buffer_length(&c->out) == 0)
		client_close(c);
	else
		loop_watch(c, EPOLLOUT);
}

/* ------------------------------------------------------------------ registry */

void clients_each(client_visit *visit, void *arg)
{
	pthread_mutex_lock(&registry_lock);
	for (struct client *c = registry; c != NULL; c = c->next)
		visit(arg, c);
	pthread_mutex_unlock(&registry_lock);
}

/* Only the loop's thread frees its clients, so the list outlives the lock. */
void clients_of_loop(struct loop *loop, void (*end)(struct client *c))
{
	size_t count = 0;
	pthread_mutex_lock(&registry_lock);
	for (struct client *c = registry; c != NULL; c = c->next)
		count += c->loop == loop;
	struct client **all = allocate((count + 1) * sizeof(struct client *)), **last = all;
	for (struct client *c = registry; c != NULL; c = c->next)
		if (c->loop == loop)
			*last++ = c;
	pthread_mutex_unlock(&registry_lock);
	for (struct client **c = all; c < last; c++)
		end(*c);
	free(all);
}

bool clients_left(struct loop *loop)
{
	pthread_mutex_lock(&registry_lock);
	struct client *c = registry;
	while (c != NULL && c->loop != loop)
		c = c->next;
	pthread_mutex_unlock(&registry_lock);
	return c != NULL;
}

void client_set_name(char **name, struct slice value)
{
	char *text = NULL;
	if (value.length > 0) {
		text = allocate(value.length + 1);
		memcpy(text, value.data, value.length);
		text[value.length] = 0;
	}
	pthread_mutex_lock(&registry_lock);
	free(*name);
	*name = text;
	pthread_mutex_unlock(&registry_lock);
}

void client_describe(struct client *c, struct buffer *out)
{
	char head[160], tail[160];
	uint64_t now = tw_service_now(cache.service);
	uint64_t seen = atomic_load_explicit(&c->seen_ns, memory_order_relaxed);
	const char *command = atomic_load_explicit(&c->last_command, memory_order_relaxed);
	snprintf(head, sizeof(head), "id=%" PRIu64 " addr=%s fd=%d name=", c->id, c->peer, c->fd);
	snprintf(tail, sizeof(tail),
		 " age=%" PRIu64 " idle=%" PRIu64 " flags=N db=0 cmd=%s io-thread=%d lib-name=",
		 (now - c->made_ns) / TW_SECOND, (now > seen ? now - seen : 0) / TW_SECOND,
		 command != NULL ? command : "NULL", (int)(c->loop - cache.loops));
	reply_raw(out, head);
	reply_raw(out, c->name != NULL ? c->name : "");
	reply_raw(out, tail);
	reply_raw(out, c->library != NULL ? c->library : "");
	reply_raw(out, " lib-ver=");
	reply_raw(out, c->library_version != NULL ? c->library_version : "");
	reply_raw(out, "\n");
}
