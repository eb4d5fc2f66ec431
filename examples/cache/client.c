/* Clients, and the commands about the connection itself. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "examples/cache/commands.h"
#include "examples/cache/pubsub.h"

#define READ_MOST (1024 * 1024)

static pthread_mutex_t lists_lock = PTHREAD_MUTEX_INITIALIZER;

/* ------------------------------------------------------------------ life */

void client_open(struct loop *loop, int fd, const char *peer, const char *own)
{
	struct client *c = allocate(sizeof(*c));
	*c = (struct client){.loop = loop, .fd = fd, .made_ns = tw_service_now(cache.service)};
	c->id = atomic_fetch_add_explicit(&cache.next_client_id, 1, memory_order_relaxed) + 1;
	atomic_init(&c->seen_ns, c->made_ns);
	snprintf(c->peer, sizeof(c->peer), "%s", peer);
	snprintf(c->own, sizeof(c->own), "%s", own);
	resp_init(&c->parser);
	pthread_mutex_lock(&lists_lock);
	c->next = loop->clients;
	if (c->next != NULL)
		c->next->previous = c;
	loop->clients = c;
	pthread_mutex_unlock(&lists_lock);
	loop_watch(c, EPOLLIN);
}

void client_close(struct client *c)
{
	pubsub_leave(c);
	pthread_mutex_lock(&lists_lock);
	*(c->previous != NULL ? &c->previous->next : &c->loop->clients) = c->next;
	if (c->next != NULL)
		c->next->previous = c->previous;
	pthread_mutex_unlock(&lists_lock);
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

/* ------------------------------------------------------------------ input and output */

/* Sends what the peer takes. False: the peer is gone. */
static bool send_some(struct client *c)
{
	while (buffer_length(&c->out) > 0) {
		ssize_t n =
		    send(c->fd, c->out.data + c->out.start, buffer_length(&c->out), MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK;
		figure_add(&c->loop->figures.output_bytes, (uint64_t)n);
		buffer_take(&c->out, (size_t)n);
	}
	buffer_rest(&c->out);
	return true;
}

/* Runs the whole requests at the start of the bytes. How many bytes they were. */
static size_t run_requests(struct client *c, const char *data, size_t length)
{
	size_t used = 0;
	while (!c->closing && buffer_length(&c->out) <= CLIENT_MAX_OUTPUT) {
		enum resp_answer answer = resp_parse(&c->parser, data + used, length - used);
		if (answer == RESP_MORE)
			break;
		if (answer == RESP_ERROR) {
			figure_add(&c->loop->figures.protocol_errors, 1);
			reply_error(&c->out, "ERR %s", c->parser.error);
			c->closing = true;
			break;
		}
		used += c->parser.used;
		if (c->parser.argc > 0)
			command_run(c, c->parser.argv, c->parser.argc);
		resp_next(&c->parser);
	}
	return used;
}

/*
 * Reads and runs. Into the loop's buffer, if nothing waits: only what is no whole request is copied
 * to the client's own. False: the client must go.
 */
static bool read_some(struct client *c)
{
	bool fresh = buffer_length(&c->in) == 0;
	size_t size = LOOP_INPUT;
	if (!fresh) {
		size_t missing = resp_expected(&c->parser, buffer_length(&c->in));
		size = missing < LOOP_INPUT  ? LOOP_INPUT
		       : missing < READ_MOST ? missing
					     : READ_MOST;
	}
	char *to = fresh ? c->loop->input : buffer_reserve(&c->in, size);
	ssize_t n = recv(c->fd, to, size, 0);
	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
	figure_add(&c->loop->figures.input_bytes, (uint64_t)n);
	if (fresh) {
		size_t used = run_requests(c, to, (size_t)n);
		buffer_add(&c->in, to + used, (size_t)n - used);
	} else {
		c->in.end += (size_t)n;
		buffer_take(&c->in,
			    run_requests(c, c->in.data + c->in.start, buffer_length(&c->in)));
		buffer_rest(&c->in);
	}
	return buffer_length(&c->in) <= CLIENT_MAX_INPUT;
}

/* ------------------------------------------------------------------ events */

/* Sends the output, then the mail; then asks epoll for what comes next, or closes. */
static void settle(struct client *c, bool alive)
{
	do
		alive = alive && send_some(c);
	while (alive && buffer_length(&c->out) == 0 && pubsub_collect(c, false) &&
	       buffer_length(&c->out) > 0);
	size_t waiting = buffer_length(&c->out);
	if (waiting > CLIENT_MAX_OUTPUT)
		figure_add(&c->loop->figures.slow_clients, 1);
	if (!alive || waiting > CLIENT_MAX_OUTPUT || (c->closing && waiting == 0))
		client_close(c);
	else
		loop_watch(c, (c->closing ? 0 : EPOLLIN) | (waiting > 0 ? EPOLLOUT : 0));
}

void client_event(struct client *c, uint32_t events)
{
	bool alive = (events & (EPOLLERR | EPOLLHUP)) == 0; /* else no reply can be sent */
	atomic_store_explicit(&c->seen_ns, c->loop->now_ns, memory_order_relaxed);
	if (alive && (events & EPOLLIN) && !c->closing)
		alive = read_some(c);
	settle(c, alive);
}

void client_mail(struct client *c)
{
	bool in_bounds = pubsub_collect(c, false);
	if (!in_bounds)
		figure_add(&c->loop->figures.slow_clients, 1);
	settle(c, in_bounds);
}

void client_finish(struct client *c)
{
	if (!pubsub_collect(c, true) || !send_some(c) || buffer_length(&c->out) == 0)
		client_close(c);
	else
		loop_watch(c, EPOLLOUT);
}

/* ------------------------------------------------------------------ CLIENT */

static void set_text(char **name, struct slice value)
{
	char *text = NULL;
	if (value.length > 0) {
		text = allocate(value.length + 1);
		memcpy(text, value.data, value.length);
		text[value.length] = 0;
	}
	pthread_mutex_lock(&lists_lock);
	free(*name);
	*name = text;
	pthread_mutex_unlock(&lists_lock);
}

/* The line of CLIENT INFO and CLIENT LIST. What only a client's own loop knows is 0 for others. */
static void describe(struct client *c, bool own, struct buffer *out)
{
	char *text;
	uint64_t now = tw_service_now(cache.service);
	uint64_t seen = atomic_load_explicit(&c->seen_ns, memory_order_relaxed);
	const char *command = atomic_load_explicit(&c->last_command, memory_order_relaxed);
	int length = asprintf(
	    &text,
	    "id=%" PRIu64 " addr=%s laddr=%s fd=%d name=%s age=%" PRIu64 " idle=%" PRIu64
	    " flags=N db=0 sub=%zu psub=%zu ssub=0 multi=-1 qbuf=%zu qbuf-free=0 obl=0 oll=0 "
	    "omem=%zu tot-mem=%zu events=r cmd=%s user=default redir=-1 resp=%d io-thread=%d "
	    "lib-name=%s lib-ver=%s\n",
	    c->id, c->peer, c->own, c->fd, c->name != NULL ? c->name : "",
	    (now - c->made_ns) / TW_SECOND, (now > seen ? now - seen : 0) / TW_SECOND,
	    own ? c->counts[0] : 0, own ? c->counts[1] : 0, own ? buffer_length(&c->in) : 0,
	    own ? buffer_length(&c->out) : 0, sizeof(*c) + (own ? c->in.room + c->out.room : 0),
	    command != NULL ? command : "NULL", own && c->resp3 ? 3 : 2,
	    (int)(c->loop - cache.loops), c->library != NULL ? c->library : "",
	    c->library_version != NULL ? c->library_version : "");
	if (length < 0)
		return;
	buffer_add(out, text, (size_t)length);
	free(text);
}

/* CLIENT LIST; CLIENT INFO: the client's own line. */
void cmd_client_list(struct call *c)
{
	struct buffer text = {0};
	if (c->argc > 2) {
		reply_syntax_error(c);
		return;
	}
	pthread_mutex_lock(&lists_lock);
	for (struct loop *l = cache.loops; l < cache.loops + cache.loop_count; l++)
		for (struct client *each = l->clients; each != NULL; each = each->next)
			if (c->command->variant || each == c->client)
				describe(each, l == c->client->loop, &text);
	pthread_mutex_unlock(&lists_lock);
	reply_verbatim(c->out, text.data, buffer_length(&text), c->resp3);
	buffer_free(&text);
}

void cmd_client_id(struct call *c)
{
	reply_integer(c->out, (int64_t)c->client->id);
}

void cmd_client_getname(struct call *c)
{
	if (c->client->name != NULL)
		reply_text(c->out, c->client->name);
	else
		reply_null(c->out, c->resp3);
}

static bool take_name(struct call *c, struct slice value, const char *what)
{
	for (size_t i = 0; i < value.length; i++) {
		if (value.data[i] >= '!' && value.data[i] <= '~')
			continue;
		reply_error(c->out, "ERR %s cannot contain spaces, newlines or special characters.",
			    what);
		return false;
	}
	return true;
}

void cmd_client_setname(struct call *c)
{
	if (!take_name(c, c->argv[2], "Client names"))
		return;
	set_text(&c->client->name, c->argv[2]);
	reply_ok(c->out);
}

void cmd_client_setinfo(struct call *c)
{
	bool is_name = slice_is(c->argv[2], "lib-name");
	if (!is_name && !slice_is(c->argv[2], "lib-ver")) {
		reply_error(c->out, "ERR Unrecognized option '%.*s'", (int)c->argv[2].length,
			    c->argv[2].data);
	} else if (take_name(c, c->argv[3], is_name ? "lib-name" : "lib-ver")) {
		set_text(is_name ? &c->client->library : &c->client->library_version, c->argv[3]);
		reply_ok(c->out);
	}
}

/* ------------------------------------------------------------------ the connection */

void cmd_ping(struct call *c)
{
	if (c->argc > 2) {
		reply_bad_arity(c);
	} else if (!c->resp3 && pubsub_total(c->client) > 0) {
		reply_array(c->out, 2);
		reply_text(c->out, "pong");
		reply_slice(c->out, c->argc == 2 ? c->argv[1] : SLICE(""));
	} else if (c->argc == 2) {
		reply_slice(c->out, c->argv[1]);
	} else {
		reply_status(c->out, "PONG");
	}
}

void cmd_echo(struct call *c)
{
	reply_slice(c->out, c->argv[1]);
}

void cmd_select(struct call *c)
{
	int64_t index;
	if (!take_integer(c, c->argv[1], &index))
		return;
	if (index < INT_MIN || index > INT_MAX)
		reply_error(c->out, "ERR value is out of range, value must between %d and %d",
			    INT_MIN, INT_MAX);
	else if (index != 0)
		reply_error(c->out, "ERR DB index is out of range");
	else
		reply_ok(c->out);
}

void cmd_quit(struct call *c)
{
	reply_ok(c->out);
	c->client->closing = true;
}

static void set_protocol(struct call *c, bool resp3)
{
	c->client->resp3 = c->resp3 = resp3;
	pubsub_set_resp3(c->client, resp3);
}

void cmd_reset(struct call *c)
{
	pubsub_leave(c->client);
	set_text(&c->client->name, SLICE(""));
	set_protocol(c, false);
	reply_status(c->out, "RESET");
}

static void reply_words(struct buffer *out, const char *words)
{
	for (const char *end; *words != 0; words = *end == 0 ? end : end + 1) {
		end = strchrnul(words, ' ');
		reply_bulk(out, words, (size_t)(end - words));
	}
}

/* Options of HELLO. There are no passwords, so AUTH accepts any for the user "default". */
static bool take_hello_options(struct call *c, const struct slice **name)
{
	for (size_t i = 2; i < c->argc; i++) {
		size_t left = c->argc - i - 1;
		if (slice_is(c->argv[i], "auth") && left >= 2) {
			if (!slice_is(c->argv[i + 1], "default")) {
				reply_error(c->out, "WRONGPASS invalid username-password pair or "
						    "user is disabled.");
				return false;
			}
			i += 2;
		} else if (slice_is(c->argv[i], "setname") && left >= 1) {
			*name = &c->argv[++i];
			if (!take_name(c, **name, "Client names"))
				return false;
		} else {
			reply_error(c->out, "ERR Syntax error in HELLO option '%.*s'",
				    (int)c->argv[i].length, c->argv[i].data);
			return false;
		}
	}
	return true;
}

void cmd_hello(struct call *c)
{
	int64_t version = c->resp3 ? 3 : 2;
	const struct slice *name = NULL;
	if (c->argc >= 2 && !slice_integer(c->argv[1], &version)) {
		reply_error(c->out, "ERR Protocol version is not an integer or out of range");
		return;
	}
	if (version < 2 || version > 3) {
		reply_error(c->out, "NOPROTO unsupported protocol version");
		return;
	}
	if (!take_hello_options(c, &name))
		return;
	if (name != NULL)
		set_text(&c->client->name, *name);
	set_protocol(c, version == 3);
	reply_map(c->out, 7, c->resp3);
	reply_words(c->out, "server redis version " REDIS_VERSION " proto");
	reply_integer(c->out, version);
	reply_words(c->out, "id");
	reply_integer(c->out, (int64_t)c->client->id);
	reply_words(c->out, "mode standalone role master modules");
	reply_array(c->out, 0);
}
