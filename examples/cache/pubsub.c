#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "examples/cache/cache.h"
#include "examples/cache/client.h"
#include "examples/cache/commands.h"
#include "examples/cache/glob.h"
#include "examples/cache/loop.h"
#include "examples/cache/pubsub.h"
#include "examples/cache/reply.h"

#define CHAINS 1024

/* A channel, or a pattern. It exists while it has subscribers. */
struct topic {
	struct topic *next; /* in its chain */
	struct slice name;
	struct subscriber **subscribers;
	size_t count, room;
	char bytes[];
};

struct subscriber {
	struct client *client;
	struct topic **topics[2]; /* channels, patterns */
	size_t counts[2], rooms[2];
	struct buffer mail;
	bool resp3, queued, overflowed;
	struct subscriber *next_ready;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct topic *chains[2][CHAINS]; /* of channels, of patterns */
static size_t topic_counts[2];
static _Atomic size_t subscriptions;

static bool same(struct slice a, struct slice b)
{
	return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

/* The link that points to the topic, or to the end of its chain. */
static struct topic **topic_link(struct slice name, bool pattern)
{
	struct topic **link = &chains[pattern][table_hash(name) % CHAINS];
	while (*link != NULL && !same((*link)->name, name))
		link = &(*link)->next;
	return link;
}

static void add_pointer(void *list, size_t *count, size_t *room, void *pointer)
{
	void **pointers = *(void ***)list;
	if (*count == *room) {
		*room = *room == 0 ? 1 : 2 * *room;
		pointers = reallocate(pointers, *room * sizeof(*pointers));
		memcpy(list, &pointers, sizeof(pointers));
	}
	pointers[(*count)++] = pointer;
}

/* ------------------------------------------------------------------ subscriptions */

static size_t index_of(const struct subscriber *s, struct slice name, bool pattern)
{
	size_t i = 0;
	while (i < s->counts[pattern] && !same(s->topics[pattern][i]->name, name))
		i++;
	return i;
}

static void subscribe(struct client *c, struct slice name, bool pattern)
{
	struct subscriber *s = c->subscriber;
	if (s == NULL) {
		s = c->subscriber = allocate(sizeof(*s));
		*s = (struct subscriber){.client = c, .resp3 = c->resp3};
	}
	if (index_of(s, name, pattern) < s->counts[pattern])
		return;
	struct topic **link = topic_link(name, pattern), *t = *link;
	if (t == NULL) {
		t = *link = allocate(sizeof(*t) + name.length + 1);
		*t = (struct topic){.name = {t->bytes, name.length}};
		memcpy(t->bytes, name.data, name.length);
		topic_counts[pattern]++;
	}
	add_pointer(&t->subscribers, &t->count, &t->room, s);
	add_pointer(&s->topics[pattern], &s->counts[pattern], &s->rooms[pattern], t);
	atomic_fetch_add_explicit(&subscriptions, 1, memory_order_relaxed);
}

static void unsubscribe(struct subscriber *s, size_t index, bool pattern)
{
	struct topic *t = s->topics[pattern][index];
	size_t at = 0;
	while (t->subscribers[at] != s)
		at++;
	t->subscribers[at] = t->subscribers[--t->count];
	s->topics[pattern][index] = s->topics[pattern][--s->counts[pattern]];
	atomic_fetch_sub_explicit(&subscriptions, 1, memory_order_relaxed);
	if (t->count > 0)
		return;
	*topic_link(t->name, pattern) = t->next;
	topic_counts[pattern]--;
	free(t->subscribers);
	free(t);
}

size_t pubsub_count(const struct client *c, bool patterns)
{
	return c->subscriber != NULL ? c->subscriber->counts[patterns] : 0;
}

size_t pubsub_topics(bool patterns)
{
	pthread_mutex_lock(&lock);
	size_t count = topic_counts[patterns];
	pthread_mutex_unlock(&lock);
	return count;
}

void pubsub_set_resp3(struct client *c, bool resp3)
{
	pthread_mutex_lock(&lock);
	if (c->subscriber != NULL)
		c->subscriber->resp3 = resp3;
	pthread_mutex_unlock(&lock);
}

void pubsub_leave(struct client *c)
{
	struct subscriber *s = c->subscriber;
	if (s == NULL)
		return;
	pthread_mutex_lock(&lock);
	for (int pattern = 0; pattern < 2; pattern++)
		while (s->counts[pattern] > 0)
			unsubscribe(s, 0, pattern);
	struct subscriber **link = &c->loop->ready;
	while (s->queued && *link != s)
		link = &(*link)->next_ready;
	if (s->queued)
		*link = s->next_ready;
	pthread_mutex_unlock(&lock);
	free(s->topics[0]);
	free(s->topics[1]);
	buffer_free(&s->mail);
	free(s);
	c->subscriber = NULL;
}

/* ------------------------------------------------------------------ mail */

static void mail_add(struct subscriber *s, const struct topic *pattern, struct slice channel,
		     struct slice message)
{
	struct loop *loop = s->client->loop;
	if (s->overflowed)
		return;
	reply_push(&s->mail, pattern != NULL ? 4 : 3, s->resp3);
	reply_text(&s->mail, pattern != NULL ? "pmessage" : "message");
	if (pattern != NULL)
		reply_slice(&s->mail, pattern->name);
	reply_slice(&s->mail, channel);
	reply_slice(&s->mail, message);
	s->overflowed = buffer_length(&s->mail) > PUBSUB_MAX_MAIL;
	if (s->queued)
		return;
	s->queued = true;
	s->next_ready = loop->ready;
	loop->ready = s;
	if (s->next_ready == NULL)
		loop_wake(loop);
}

size_t pubsub_publish(struct slice channel, struct slice message)
{
	size_t receivers = 0;
	if (atomic_load_explicit(&subscriptions, memory_order_relaxed) == 0)
		return 0;
	pthread_mutex_lock(&lock);
	const struct topic *t = *topic_link(channel, false);
	for (size_t i = 0; t != NULL && i < t->count; i++, receivers++)
		mail_add(t->subscribers[i], NULL, channel, message);
	for (size_t chain = 0; topic_counts[1] > 0 && chain < CHAINS; chain++)
		for (t = chains[1][chain]; t != NULL; t = t->next)
			for (size_t i = 0; glob_matches(t->name, channel) && i < t->count;
			     i++, receivers++)
				mail_add(t->subscribers[i], t, channel, message);
	pthread_mutex_unlock(&lock);
	return receivers;
}

bool pubsub_collect(struct client *c, bool behind)
{
	struct subscriber *s = c->subscriber;
	if (s == NULL)
		return true;
	pthread_mutex_lock(&lock);
	bool in_bounds = !s->overflowed;
	struct buffer mail = s->mail;
	if (buffer_length(&c->out) == 0) {
		s->mail = c->out;
		c->out = mail;
	} else if (behind) {
		buffer_add(&c->out, mail.data + mail.start, buffer_length(&mail));
		buffer_take(&s->mail, buffer_length(&mail));
		buffer_rest(&s->mail);
	}
	pthread_mutex_unlock(&lock);
	return in_bounds;
}

struct client *pubsub_next_ready(struct loop *loop)
{
	pthread_mutex_lock(&lock);
	struct subscriber *s = loop->ready;
	if (s != NULL) {
		loop->ready = s->next_ready;
		s->queued = false;
	}
	pthread_mutex_unlock(&lock);
	return s != NULL ? s->client : NULL;
}

/* ------------------------------------------------------------------ commands */

static void reply_change(struct call *c, const char *what, const struct slice *name)
{
	reply_push(c->out, 3, c->resp3);
	reply_text(c->out, what);
	if (name != NULL)
		reply_slice(c->out, *name);
	else
		reply_null(c->out, c->resp3);
	reply_integer(c->out, (int64_t)pubsub_total(c->client));
}

void cmd_subscribe(struct call *c)
{
	for (size_t i = 1; i < c->argc; i++) {
		pthread_mutex_lock(&lock);
		subscribe(c->client, c->argv[i], c->command->variant);
		pthread_mutex_unlock(&lock);
		reply_change(c, c->command->name, &c->argv[i]);
	}
}

void cmd_unsubscribe(struct call *c)
{
	bool pattern = c->command->variant;
	struct subscriber *s = c->client->subscriber;
	if (c->argc == 1 && pubsub_count(c->client, pattern) == 0)
		reply_change(c, c->command->name, NULL);
	while (c->argc == 1 && pubsub_count(c->client, pattern) > 0) {
		struct slice name = s->topics[pattern][0]->name;
		struct buffer copy = {0};
		buffer_add(&copy, name.data, name.length);
		name.data = name.length > 0 ? copy.data : "";
		pthread_mutex_lock(&lock);
		unsubscribe(s, 0, pattern);
		pthread_mutex_unlock(&lock);
		reply_change(c, c->command->name, &name);
		buffer_free(&copy);
	}
	for (size_t i = 1; i < c->argc; i++) {
		pthread_mutex_lock(&lock);
		size_t index = s != NULL ? index_of(s, c->argv[i], pattern) : 0;
		if (s != NULL && index < s->counts[pattern])
			unsubscribe(s, index, pattern);
		pthread_mutex_unlock(&lock);
		reply_change(c, c->command->name, &c->argv[i]);
	}
}

void cmd_publish(struct call *c)
{
	reply_integer(c->out, (int64_t)pubsub_publish(c->argv[1], c->argv[2]));
}

static void reply_channels(struct call *c)
{
	struct buffer names = {0};
	size_t count = 0;
	pthread_mutex_lock(&lock);
	for (size_t chain = 0; chain < CHAINS; chain++)
		for (const struct topic *t = chains[0][chain]; t != NULL; t = t->next)
			if (c->argc == 2 || glob_matches(c->argv[2], t->name)) {
				reply_slice(&names, t->name);
				count++;
			}
	pthread_mutex_unlock(&lock);
	reply_array(c->out, count);
	buffer_add(c->out, names.data, buffer_length(&names));
	buffer_free(&names);
}

void cmd_pubsub(struct call *c)
{
	struct slice which = c->argv[1];
	if (slice_is(which, "channels") && c->argc <= 3) {
		reply_channels(c);
	} else if (slice_is(which, "channels")) {
		reply_error(c->out,
			    "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try "
			    "PUBSUB HELP.",
			    (int)which.length, which.data);
	} else if (slice_is(which, "numsub")) {
		reply_array(c->out, 2 * (c->argc - 2));
		for (size_t i = 2; i < c->argc; i++) {
			pthread_mutex_lock(&lock);
			const struct topic *t = *topic_link(c->argv[i], false);
			size_t count = t != NULL ? t->count : 0;
			pthread_mutex_unlock(&lock);
			reply_slice(c->out, c->argv[i]);
			reply_integer(c->out, (int64_t)count);
		}
	} else if (!slice_is(which, "numpat")) {
		reply_unknown_subcommand(c);
	} else if (c->argc != 2) {
		reply_bad_arity(c, "numpat");
	} else {
		reply_integer(c->out, (int64_t)pubsub_topics(true));
	}
}

/* ------------------------------------------------------------------ what happens to keys */

static const struct {
	char letter;
	unsigned flag;
} letters[] = {
    {'g', NOTIFY_GENERIC},      {'$', NOTIFY_STRING},       {'l', 1 << NOTIFY_OTHERS},
    {'s', 2 << NOTIFY_OTHERS},  {'h', 4 << NOTIFY_OTHERS},  {'z', 8 << NOTIFY_OTHERS},
    {'x', NOTIFY_EXPIRED},      {'e', 16 << NOTIFY_OTHERS}, {'t', 32 << NOTIFY_OTHERS},
    {'d', 64 << NOTIFY_OTHERS}, {'n', NOTIFY_NEW},          {'A', NOTIFY_ALL},
    {'K', NOTIFY_KEYSPACE},     {'E', NOTIFY_KEYEVENT},     {'m', NOTIFY_MISS},
};

#define LETTERS (sizeof(letters) / sizeof(letters[0]))

bool notify_parse(struct slice text, unsigned *flags)
{
	*flags = 0;
	for (size_t i = 0; i < text.length; i++) {
		size_t at = 0;
		while (at < LETTERS && letters[at].letter != text.data[i])
			at++;
		if (at == LETTERS)
			return false;
		*flags |= letters[at].flag;
	}
	return true;
}

/* "A" takes the place of all letters before it, as with Redis: "n", too, which it does not mean. */
void notify_letters(unsigned flags, char *out)
{
	bool all = (flags & NOTIFY_ALL) == NOTIFY_ALL, before_all = true;
	for (size_t i = 0; i < LETTERS; i++) {
		bool is_all = letters[i].flag == NOTIFY_ALL;
		before_all = before_all && !is_all;
		if (is_all ? all : (flags & letters[i].flag) != 0 && !(all && before_all))
			*out++ = letters[i].letter;
	}
	*out = 0;
}

static void publish(const char *prefix, struct slice name, struct slice message)
{
	struct buffer channel = {0};
	buffer_add(&channel, prefix, strlen(prefix));
	buffer_add(&channel, name.data, name.length);
	pubsub_publish((struct slice){channel.data, buffer_length(&channel)}, message);
	buffer_free(&channel);
}

void notify(unsigned kind, const char *event, struct slice key)
{
	unsigned flags = atomic_load_explicit(&cache.notify, memory_order_relaxed);
	struct slice name = {event, strlen(event)};
	if ((flags & kind) == 0 || atomic_load_explicit(&subscriptions, memory_order_relaxed) == 0)
		return;
	if (flags & NOTIFY_KEYSPACE)
		publish("__keyspace@0__:", key, name);
	if (flags & NOTIFY_KEYEVENT)
		publish("__keyevent@0__:", name, key);
}
