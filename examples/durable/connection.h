/* A connection to Redis for each thread. */
#ifndef DURABLE_CONNECTION_H
#define DURABLE_CONNECTION_H

#include <hiredis/hiredis.h>

enum script {
	SCRIPT_SUBMIT,
	SCRIPT_CANCEL,
	SCRIPT_JOIN,
	SCRIPT_SERVE,
	SCRIPT_TAKE,
	SCRIPT_ACKNOWLEDGE,
	SCRIPTS
};

void connection_configure(const char *socket, int timeout_ms);
void connection_close(void);

/*
 * Calls a script, or runs a command. Errors are printed, each at most once a second. Returns:
 *   0         the reply is the caller's
 *   -EIO      no answer: the call may have been carried out
 *   -ENOSPC   the server is full
 *   -EREMOTEIO  another error of the server: nothing was done
 */
int connection_run(enum script script, int count, const char **arguments, redisReply **out);
int connection_command(const char *command, redisReply **out);

/* The two halves of connection_run, for many calls in one go. append returns 0 or -EIO. */
int connection_append(enum script script, int count, const char **arguments);
int connection_reply(redisReply **out);

#endif
