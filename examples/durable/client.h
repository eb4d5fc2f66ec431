/* What a client of the store does: one function for each command of the program. Exit statuses. */
#ifndef DURABLE_CLIENT_H
#define DURABLE_CLIENT_H

#include <stdint.h>

int client_submit(const char *prefix, int count, int64_t within_ms, const char *payload);
int client_cancel(const char *id);
int client_left(void);
int client_canary(void);

#endif
