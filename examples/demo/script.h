/* What the clients do: each kind's acts, one after the other, and what it makes of an answer. */
#ifndef EXAMPLES_DEMO_SCRIPT_H
#define EXAMPLES_DEMO_SCRIPT_H

#include "examples/demo/clients.h"

/* The client's next act. The result: when it acts again, or NEVER. */
uint64_t script_act(struct clients *all, struct client *c);

/* An answer has come, at that time. The result as above. */
uint64_t script_answered(struct clients *all, struct client *c, uint64_t seen_ns);

/* The server has ended the connection. */
uint64_t script_ended(struct clients *all, struct client *c, uint64_t seen_ns);

/* To the epoll of all; false: no connection to be had. */
bool clients_connect(struct clients *all, struct client *c);
void clients_disconnect(struct client *c);

#endif
