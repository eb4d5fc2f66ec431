#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "examples/cache/commands.h"
#include "examples/cache/pubsub.h"

#define CHAINS 1024

/* A client's subscription to a channel or a pattern. */
struct subscription {
	struct subscription *next;     /* in its chain: those of one name are neighbors */
	struct subscription *next_own; /* of the same client */
	struct client *client;
	bool is_pattern;
	size_t length;
	char name[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct subscription *chains[2][CHAINS]; /* of channels, of patterns */
static _Atomic size_t subscription_counts[2];

static struct slice name_of(const struct subscription *s)
{
	return (struct slice){s->name, s->length};
}

/* The link that points to the name's first subscription, or to the end of its chain. */
static struct subscription **first_link(struct slice name, bool is_pattern)
{
	struct subscription **link = &chains[is_pattern][table_hash(name) % CHAINS];
	while (*link != NULL && !slice_same(name_of(*link), name))
		link = &(*link)->next;
	return link;
}

static bool is_last_of_name(const struct subscription *s)
{
	return s->next == NULL || !slice_same(name_of(s), name_of(s->next));
}

/* ------------------------------------------------------------------ subscriptions */

static struct subscription **own_link(struct client *c, struct slice name, bool is_pattern)
{
	struct subscription **link = &c->subscriptions;
	while (*link != NULL &&
	       ((*link)->is_pattern != is_pattern || !slice_same(name_of(*link), name)))
		link = &(*link)->next_own;
	return link;
}

static void subscribe(struct client *c, struct slice name, bool is_pattern)
{
	struct subscription **own = own_link(c, name, is_pattern);
	if (*own != NULL)
		return;
	struct subscription *s = allocate(sizeof(*s) + name.length),
			    **first = first_link(name, is_pattern);
	*s = (struct subscription){
	    .next = *first, .client = c, .is_pattern = is_pattern, .length = name.length};
	memcpy(s->name, name.data, name.length);
	*first = *own = s;
	c->counts[is_pattern]++;
	subscription_counts[is_pattern]++;
}

/* Takes out the subscription that one of the client's links points to. The caller frees it. */
static struct subscription *take_out(struct client *c, struct subscription **own)
{
	struct subscription *s = *own, **link = first_link(name_of(s), s->is_pattern);
	while (*link != s)
		link = &(*link)->next;
	*link = s->next;
	*own = s->next_own;
	c->counts[s->is_pattern]--;
	subscription_counts[s->is_pattern]--;
	return s;
}

size_t pubsub_topics(bool patterns)
{
	size_t count = 0;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; subscription_counts[patterns] > 0 && i < CHAINS; i++)
		for (const struct subscription *s = chains[patterns][i]; s != NULL; s = s->next)
			count += is_last_of_name(s);
	pthread_mutex_unlock(&lock);
	return count;
}

void pubsub_set_resp3(struct client *c, bool resp3)
{
	pthread_mutex_lock(&lock);
	c->resp3 = resp3;
	pthread_mutex_unlock(&lock);
}

void pubsub_leave(struct client *c)
{
	if (!c->has_subscribed)
		return;
	c->has_subscribed = false;
	pthread_mutex_lock(&lock);
	while (c->subscriptions != NULL)
		free(take_out(c, &c->subscriptions));
	struct client **link = &c->loop->ready;
	while (c->queued && *link != c)
		link = &(*link)->next_ready;
	if (c->queued)
		*link = c->next_ready;
	c->queued = c->overflowed = false;
	buffer_free(&c->mail);
	pthread_mutex_unlock(&lock);
}

/* ------------------------------------------------------------------ mail */

static void deliver(const struct subscription *s, struct slice channel, struct slice message)
{
	struct client *c = s->client;
	if (c->overflowed)
		return;
	reply_push(&c->mail, s->is_pattern ? 4 : 3, c->resp3);
	reply_text(&c->mail, s->is_pattern ? "pmessage" : "message");
	if (s->is_pattern)
		reply_slice(&c->mail, name_of(s));
	reply_slice(&c->mail, channel);
	reply_slice(&c->mail, message);
	c->overflowed = buffer_length(&c->mail) > PUBSUB_MAX_MAIL;
	if (c->queued)
		return;
	c->queued = true;
	c->next_ready = c->loop->ready;
	c->loop->ready = c;
	if (c->next_ready == NULL)
		loop_wake(c->loop);
}

static bool has_subscribers(void)
{
	return atomic_load_explicit(&subscription_counts[0], memory_order_relaxed) > 0 ||
	       atomic_load_explicit(&subscription_counts[1], memory_order_relaxed) > 0;
}

size_t pubsub_publish(struct slice channel, struct slice message)
{
	size_t receivers = 0;
	if (!has_subscribers())
		return 0;
	pthread_mutex_lock(&lock);
	const struct subscription *s = *first_link(channel, false);
	for (; s != NULL && slice_same(name_of(s), channel); s = s->next, receivers++)
		deliver(s, channel, message);
	for (size_t i = 0; subscription_counts[1] > 0 && i < CHAINS; i++)
		for (s = chains[1][i]; s != NULL; s = s->next)
			if (glob_matches(name_of(s), channel)) {
				deliver(s, channel, message);
				receivers++;
			}
	pthread_mutex_unlock(&lock);
	return receivers;
}

bool pubsub_collect(struct client *c, bool behind)
{
	if (!c->has_subscribed)
		return true;
	pthread_mutex_lock(&lock);
	bool in_bounds = !c->overflowed;
	struct buffer mail = c->mail;
	if (buffer_length(&c->out) == 0) {
		c->mail = c->out;
		c->out = mail;
	} else if (behind) {
		buffer_add(&c->out, mail.data + mail.start, buffer_length(&mail));
		buffer_free(&c->mail);
	}
	pthread_mutex_unlock(&lock);
	return in_bounds;
}

struct client *pubsub_next_ready(struct loop *loop)
{
	pthread_mutex_lock(&lock);
	struct client *c = loop->ready;
	if (c != NULL) {
		loop->ready = c->next_ready;
		c->queued = false;
	}
	pthread_mutex_unlock(&lock);
	return c;
}

/* ------------------------------------------------------------------ commands */

static void reply_change(struct call *c, const struct slice *name)
{
	reply_push(c->out, 3, c->resp3);
	reply_text(c->out, c->command->name);
	if (name != NULL)
		reply_slice(c->out, *name);
	else
		reply_null(c->out, c->resp3);
	reply_integer(c->out, (int64_t)pubsub_total(c->client));
}

void cmd_subscribe(struct call *c)
{
	c->client->has_subscribed = true;
	for (size_t i = 1; i < c->argc; i++) {
		pthread_mutex_lock(&lock);
		subscribe(c->client, c->argv[i], c->command->variant);
		pthread_mutex_unlock(&lock);
		reply_change(c, &c->argv[i]);
	}
}

static void unsubscribe(struct call *c, struct slice name)
{
	pthread_mutex_lock(&lock);
	struct subscription **own = own_link(c->client, name, c->command->variant), *s = NULL;
	if (*own != NULL)
		s = take_out(c->client, own);
	pthread_mutex_unlock(&lock);
	reply_change(c, &name);
	free(s);
}

void cmd_unsubscribe(struct call *c)
{
	if (c->argc == 1 && c->client->counts[c->command->variant] == 0)
		reply_change(c, NULL);
	while (c->argc == 1 && c->client->counts[c->command->variant] > 0) {
		const struct subscription *s = c->client->subscriptions;
		while (s->is_pattern != c->command->variant)
			s = s->next_own;
		unsubscribe(c, name_of(s));
	}
	for (size_t i = 1; i < c->argc; i++)
		unsubscribe(c, c->argv[i]);
}

void cmd_publish(struct call *c)
{
	reply_integer(c->out, (int64_t)pubsub_publish(c->argv[1], c->argv[2]));
}

void cmd_pubsub_channels(struct call *c)
{
	if (c->argc > 3) {
		reply_bad_subcommand(c);
		return;
	}
	struct buffer names = {0};
	size_t count = 0;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < CHAINS; i++)
		for (const struct subscription *s = chains[0][i]; s != NULL; s = s->next)
			if (is_last_of_name(s) &&
			    (c->argc == 2 || glob_matches(c->argv[2], name_of(s)))) {
				reply_slice(&names, name_of(s));
				count++;
			}
	pthread_mutex_unlock(&lock);
	reply_list(c->out, count, &names);
}

static size_t receivers_of(struct slice channel)
{
	size_t count = 0;
	pthread_mutex_lock(&lock);
	const struct subscription *s = *first_link(channel, false);
	for (; s != NULL && slice_same(name_of(s), channel); s = s->next)
		count++;
	pthread_mutex_unlock(&lock);
	return count;
}

void cmd_pubsub_numsub(struct call *c)
{
	reply_array(c->out, 2 * (c->argc - 2));
	for (size_t i = 2; i < c->argc; i++) {
		reply_slice(c->out, c->argv[i]);
		reply_integer(c->out, (int64_t)receivers_of(c->argv[i]));
	}
}

void cmd_pubsub_numpat(struct call *c)
{
	reply_integer(c->out, (int64_t)pubsub_topics(true));
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
	if ((flags & kind) == 0 || !has_subscribers())
		return;
	if (flags & NOTIFY_KEYSPACE)
		publish("__keyspace@0__:", key, name);
	if (flags & NOTIFY_KEYEVENT)
		publish("__keyevent@0__:", name, key);
}
