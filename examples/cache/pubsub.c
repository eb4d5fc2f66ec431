#include <pthread.h>
#include <search.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "examples/cache/client.h"
#include "examples/cache/glob.h"
#include "examples/cache/loop.h"
#include "examples/cache/pubsub.h"
#include "examples/cache/reply.h"

/* A channel, or a pattern. It exists while it has subscribers. */
struct topic {
	struct slice name; /* first: trees compare it */
	struct subscriber **subscribers;
	size_t count, room;
	struct topic *next, *previous; /* of all patterns, or all channels */
	char bytes[];
};

struct topics {
	void *tree;
	struct topic *first;
	size_t count;
};

struct subscriber {
	struct client *client;
	void *trees[2]; /* its topics: channels, patterns */
	size_t counts[2];
	struct buffer mail;
	bool resp3, in_list, overflowed;
	struct subscriber *next_ready;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct topics all[2]; /* channels, patterns */
static _Atomic size_t subscriptions;

static int compare(const void *a, const void *b)
{
	const struct slice *x = a, *y = b;
	size_t length = x->length < y->length ? x->length : y->length;
	int order = length > 0 ? memcmp(x->data, y->data, length) : 0;
	return order != 0 ? order : (x->length > y->length) - (x->length < y->length);
}

static struct topic *find(void *const *tree, struct slice name)
{
	struct topic **node = tfind(&name, tree, compare);
	return node != NULL ? *node : NULL;
}

static void put(void **tree, struct topic *t)
{
	if (tsearch(t, tree, compare) == NULL)
		abort();
}

bool pubsub_has_subscribers(void)
{
	return atomic_load_explicit(&subscriptions, memory_order_relaxed) > 0;
}

/* ------------------------------------------------------------------ topics */

static struct topic *topic_make(struct topics *topics, struct slice name)
{
	struct topic *t = allocate(sizeof(*t) + name.length + 1);
	*t = (struct topic){.name = {t->bytes, name.length}, .next = topics->first};
	memcpy(t->bytes, name.data, name.length);
	if (t->next != NULL)
		t->next->previous = t;
	topics->first = t;
	topics->count++;
	put(&topics->tree, t);
	return t;
}

static void topic_free(struct topics *topics, struct topic *t)
{
	tdelete(t, &topics->tree, compare);
	*(t->previous != NULL ? &t->previous->next : &topics->first) = t->next;
	if (t->next != NULL)
		t->next->previous = t->previous;
	topics->count--;
	free(t->subscribers);
	free(t);
}

static void topic_add(struct topic *t, struct subscriber *s)
{
	if (t->count == t->room) {
		t->room = t->room == 0 ? 1 : 2 * t->room;
		t->subscribers = reallocate(t->subscribers, t->room * sizeof(struct subscriber *));
	}
	t->subscribers[t->count++] = s;
	atomic_fetch_add_explicit(&subscriptions, 1, memory_order_relaxed);
}

static void topic_remove(struct topics *topics, struct topic *t, struct subscriber *s)
{
	size_t at = 0;
	while (t->subscribers[at] != s)
		at++;
	t->subscribers[at] = t->subscribers[--t->count];
	if (t->count == 0)
		topic_free(topics, t);
	atomic_fetch_sub_explicit(&subscriptions, 1, memory_order_relaxed);
}

/* ------------------------------------------------------------------ subscriptions */

static size_t count_of(const struct subscriber *s)
{
	return s->counts[0] + s->counts[1];
}

size_t pubsub_subscribe(struct client *c, struct slice name, bool is_pattern)
{
	pthread_mutex_lock(&lock);
	struct subscriber *s = c->subscriber;
	if (s == NULL) {
		s = c->subscriber = allocate(sizeof(*s));
		*s = (struct subscriber){.client = c, .resp3 = c->resp3};
	}
	if (find(&s->trees[is_pattern], name) == NULL) {
		struct topic *t = find(&all[is_pattern].tree, name);
		if (t == NULL)
			t = topic_make(&all[is_pattern], name);
		topic_add(t, s);
		put(&s->trees[is_pattern], t);
		s->counts[is_pattern]++;
	}
	size_t count = count_of(s);
	pthread_mutex_unlock(&lock);
	return count;
}

static void unsubscribe(struct subscriber *s, struct topic *t, bool is_pattern)
{
	tdelete(t, &s->trees[is_pattern], compare);
	s->counts[is_pattern]--;
	topic_remove(&all[is_pattern], t, s);
}

size_t pubsub_unsubscribe(struct client *c, struct slice name, bool is_pattern)
{
	struct subscriber *s = c->subscriber;
	if (s == NULL)
		return 0;
	pthread_mutex_lock(&lock);
	struct topic *t = find(&s->trees[is_pattern], name);
	if (t != NULL)
		unsubscribe(s, t, is_pattern);
	size_t count = count_of(s);
	pthread_mutex_unlock(&lock);
	return count;
}

bool pubsub_any(struct client *c, bool is_pattern, struct buffer *name)
{
	struct subscriber *s = c->subscriber;
	if (s == NULL || s->counts[is_pattern] == 0)
		return false;
	/* The root of a tree is a node, which begins with the pointer to its topic. */
	const struct topic *t = *(struct topic **)s->trees[is_pattern];
	buffer_add(name, t->name.data, t->name.length);
	return true;
}

size_t pubsub_count(struct client *c)
{
	return c->subscriber != NULL ? count_of(c->subscriber) : 0;
}

void pubsub_set_resp3(struct client *c, bool resp3)
{
	pthread_mutex_lock(&lock);
	if (c->subscriber != NULL)
		c->subscriber->resp3 = resp3;
	pthread_mutex_unlock(&lock);
}

static void leave_list(struct pubsub_ready *ready, struct subscriber *s)
{
	struct subscriber **link = &ready->first;
	while (*link != s)
		link = &(*link)->next_ready;
	*link = s->next_ready;
	s->in_list = false;
}

void pubsub_leave(struct client *c)
{
	struct subscriber *s = c->subscriber;
	if (s == NULL)
		return;
	pthread_mutex_lock(&lock);
	for (int is_pattern = 0; is_pattern < 2; is_pattern++)
		while (s->counts[is_pattern] > 0)
			unsubscribe(s, *(struct topic **)s->trees[is_pattern], is_pattern != 0);
	if (s->in_list)
		leave_list(&c->loop->ready, s);
	pthread_mutex_unlock(&lock);
	buffer_free(&s->mail);
	free(s);
	c->subscriber = NULL;
}

/* ------------------------------------------------------------------ mail */

static void enlist(struct subscriber *s)
{
	struct loop *loop = s->client->loop;
	if (s->in_list)
		return;
	bool was_empty = loop->ready.first == NULL;
	s->next_ready = loop->ready.first;
	loop->ready.first = s;
	s->in_list = true;
	if (was_empty)
		loop_wake(loop);
}

static void mail_add(struct subscriber *s, const struct topic *pattern, struct slice channel,
		     struct slice message)
{
	if (s->overflowed)
		return;
	bool was_empty = buffer_length(&s->mail) == 0;
	reply_push(&s->mail, pattern != NULL ? 4 : 3, s->resp3);
	reply_text(&s->mail, pattern != NULL ? "pmessage" : "message");
	if (pattern != NULL)
		reply_slice(&s->mail, pattern->name);
	reply_slice(&s->mail, channel);
	reply_slice(&s->mail, message);
	if (buffer_length(&s->mail) > PUBSUB_MAX_MAIL) {
		s->overflowed = true;
		buffer_free(&s->mail);
	}
	if (was_empty || s->overflowed)
		enlist(s);
}

size_t pubsub_publish(struct slice channel, struct slice message)
{
	if (!pubsub_has_subscribers())
		return 0;
	size_t receivers = 0;
	pthread_mutex_lock(&lock);
	const struct topic *t = find(&all[0].tree, channel);
	for (size_t i = 0; t != NULL && i < t->count; i++, receivers++)
		mail_add(t->subscribers[i], NULL, channel, message);
	for (t = all[1].first; t != NULL; t = t->next) {
		if (!glob_matches(t->name, channel))
			continue;
		for (size_t i = 0; i < t->count; i++, receivers++)
			mail_add(t->subscribers[i], t, channel, message);
	}
	pthread_mutex_unlock(&lock);
	return receivers;
}

bool pubsub_collect(struct client *c)
{
	struct subscriber *s = c->subscriber;
	if (s == NULL)
		return true;
	pthread_mutex_lock(&lock);
	bool overflowed = s->overflowed;
	if (buffer_length(&c->out) == 0) {
		struct buffer empty = c->out;
		c->out = s->mail;
		s->mail = empty;
	}
	pthread_mutex_unlock(&lock);
	return !overflowed;
}

struct client *pubsub_next_ready(struct loop *loop)
{
	pthread_mutex_lock(&lock);
	struct subscriber *s = loop->ready.first;
	if (s != NULL) {
		loop->ready.first = s->next_ready;
		s->in_list = false;
	}
	pthread_mutex_unlock(&lock);
	return s != NULL ? s->client : NULL;
}

/* ------------------------------------------------------------------ PUBSUB */

void pubsub_list(struct slice pattern, struct buffer *out)
{
	struct buffer names = {0};
	size_t count = 0;
	pthread_mutex_lock(&lock);
	for (const struct topic *t = all[0].first; t != NULL; t = t->next) {
		if (!glob_matches(pattern, t->name))
			continue;
		reply_slice(&names, t->name);
		count++;
	}
	pthread_mutex_unlock(&lock);
	reply_array(out, count);
	buffer_add(out, names.data, buffer_length(&names));
	buffer_free(&names);
}

size_t pubsub_subscribers(struct slice channel)
{
	pthread_mutex_lock(&lock);
	const struct topic *t = find(&all[0].tree, channel);
	size_t count = t != NULL ? t->count : 0;
	pthread_mutex_unlock(&lock);
	return count;
}

static size_t topics_count(int is_pattern)
{
	pthread_mutex_lock(&lock);
	size_t count = all[is_pattern].count;
	pthread_mutex_unlock(&lock);
	return count;
}

size_t pubsub_patterns(void)
{
	return topics_count(1);
}

size_t pubsub_channels(void)
{
	return topics_count(0);
}
