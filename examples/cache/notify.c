#include <stdio.h>
#include <string.h>

#include "examples/cache/cache.h"
#include "examples/cache/notify.h"
#include "examples/cache/pubsub.h"

static const struct {
	char letter;
	unsigned flag;
} letters[] = {
    {'g', NOTIFY_GENERIC},  {'$', NOTIFY_STRING}, {'l', NOTIFY_LIST},    {'s', NOTIFY_SET},
    {'h', NOTIFY_HASH},     {'z', NOTIFY_ZSET},   {'x', NOTIFY_EXPIRED}, {'e', NOTIFY_EVICTED},
    {'t', NOTIFY_STREAM},   {'d', NOTIFY_MODULE}, {'A', NOTIFY_ALL},     {'K', NOTIFY_KEYSPACE},
    {'E', NOTIFY_KEYEVENT}, {'m', NOTIFY_MISS},   {'n', NOTIFY_NEW},
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

/* "A" takes the place of all letters that it stands for. */
void notify_letters(unsigned flags, char *out)
{
	bool all = (flags & NOTIFY_ALL) == NOTIFY_ALL;
	for (size_t i = 0; i < LETTERS; i++) {
		bool in_all = (letters[i].flag & NOTIFY_ALL) != 0,
		     is_all = letters[i].flag == NOTIFY_ALL;
		if (is_all ? all : (flags & letters[i].flag) != 0 && !(all && in_all))
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
	if ((flags & kind) == 0 || !pubsub_has_subscribers())
		return;
	struct slice name = {event, strlen(event)};
	if (flags & NOTIFY_KEYSPACE)
		publish("__keyspace@0__:", key, name);
	if (flags & NOTIFY_KEYEVENT)
		publish("__keyevent@0__:", name, key);
}
