/* A connection to Redis for each thread, with the scripts loaded. */
#ifndef DURABLE_CONNECTION_H
#define DURABLE_CONNECTION_H

#include <hiredis/hiredis.h>

enum script { SCRIPT_SUBMIT, SCRIPT_CANCEL, SCRIPT_JOIN, SCRIPT_SERVE, SCRIPT_TAKE, SCRIPT_ACKNOWLEDGE, SCRIPTS };

void connection_configure(const char *socket, int timeout_ms);
void connection_close(void);

/* NULL: no answer, or an error. The reply is the caller's. */
redisReply *connection_run(enum script script, int count, const char **arguments);
redisReply *connection_command(const char *command);

#endif
