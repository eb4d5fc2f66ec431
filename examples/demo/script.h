/* What the clients do: each kind's acts in order, and what it does with an answer. */
#ifndef EXAMPLES_DEMO_SCRIPT_H
#define EXAMPLES_DEMO_SCRIPT_H

#include "examples/demo/clients.h"

/* The client's next act. Returns when it acts again, or NEVER. */
uint64_t script_act(struct clients *all, struct client *c);

/* An answer has come, at that time. Returns as above. */
uint64_t script_answered(struct clients *all, struct client *c, uint64_t seen_ns);

/* The server has ended the connection. */
uint64_t script_ended(struct clients *all, struct client *c, uint64_t seen_ns);

/* Adds it to the epoll of all. False: no connection. */
bool clients_connect(struct clients *all, struct client *c);
void clients_disconnect(struct client *c);

#endif
