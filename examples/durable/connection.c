/* Connections to Redis. A thread's connection is closed when the thread ends. */
#include "connection.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "scripts.h"

enum { ARGUMENTS = 8, SHA_SIZE = 41 };

static const char *const texts[SCRIPTS] = {SUBMIT, CANCEL, JOIN, SERVE, TAKE, ACKNOWLEDGE};

struct connection {
	redisContext *redis;
	char sha[SCRIPTS][SHA_SIZE];
};

static const char *socket_path;
static struct timeval patience;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void drop(void *arg)
{
	struct connection *c = arg;
	redisFree(c->redis);
	free(c);
}

static void make_key(void)
{
	pthread_key_create(&key, drop);
}

void connection_configure(const char *socket, int timeout_ms)
{
	socket_path = socket;
	patience = (struct timeval){.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
	pthread_once(&once, make_key);
}

void connection_close(void)
{
	struct connection *c = pthread_getspecific(key);
	if (!c)
		return;
	pthread_setspecific(key, NULL);
	drop(c);
}

/* Says what Redis has against a call, unless it is just starting, and has not read its jobs yet. */
static void complain(const redisReply *reply)
{
	if (reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "LOADING", 7) != 0)
		fprintf(stderr, "durable: %s\n", reply->str);
}

static bool load(struct connection *c)
{
	for (int i = 0; i < SCRIPTS; i++) {
		redisReply *reply = redisCommand(c->redis, "SCRIPT LOAD %s", texts[i]);
		bool loaded = reply && reply->type == REDIS_REPLY_STRING && reply->len == SHA_SIZE - 1;
		if (loaded)
			memcpy(c->sha[i], reply->str, SHA_SIZE);
		else if (reply)
			complain(reply);
		freeReplyObject(reply);
		if (!loaded)
			return false;
	}
	return true;
}

static struct connection *connection(void)
{
	struct connection *c = pthread_getspecific(key);
	if (c)
		return c;
	c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	c->redis = redisConnectUnixWithTimeout(socket_path, patience);
	if (!c->redis || c->redis->err || redisSetTimeout(c->redis, patience) || !load(c)) {
		drop(c);
		return NULL;
	}
	pthread_setspecific(key, c);
	return c;
}

/* After an error the connection is made again, since the scripts may be gone. */
static redisReply *checked(redisReply *reply)
{
	if (reply && reply->type != REDIS_REPLY_ERROR)
		return reply;
	if (reply)
		complain(reply);
	freeReplyObject(reply);
	connection_close();
	return NULL;
}

redisReply *connection_run(enum script script, int count, const char **arguments)
{
	struct connection *c = connection();
	const char *words[3 + ARGUMENTS] = {"EVALSHA", NULL, "0"};
	if (!c)
		return NULL;
	words[1] = c->sha[script];
	for (int i = 0; i < count && i < ARGUMENTS; i++)
		words[3 + i] = arguments[i];
	return checked(redisCommandArgv(c->redis, 3 + count, words, NULL));
}

redisReply *connection_command(const char *command)
{
	struct connection *c = connection();
	return c ? checked(redisCommand(c->redis, command)) : NULL;
}
