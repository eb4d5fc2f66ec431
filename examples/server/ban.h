/*
 * Bans: an address that misbehaves three times is refused until a timer ends the ban.
 *
 * There is one table for the process. Its lock is taken for each misdeed, and for a new connection
 * only while an address is banned. Here the timer's callback does the work itself, on a worker:
 * nothing of it belongs to a loop.
 */
#ifndef EXAMPLES_SERVER_BAN_H
#define EXAMPLES_SERVER_BAN_H

#include <stdbool.h>
#include <stdint.h>

#include "tickwheel.h"

struct ban_figures {
	uint64_t begun, lifted;
};

void ban_init(tw_service *service, uint64_t ban_ns);
void ban_free(void); /* after the service is closed */

void ban_strike(uint32_t address);
bool ban_refuses(uint32_t address);
void ban_figures(struct ban_figures *out);

#endif
