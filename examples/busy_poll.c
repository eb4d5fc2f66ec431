/*
 * A loop that polls a device and never sleeps, as packet processing does. It turns the wheel
 * itself: between two expiries that costs one look at the time, which the loop reads anyway. Each
 * packet waits for its acknowledgement with a timer; one in fifty is lost, and sent again.
 */
#include <stdio.h>

#include "tickwheel.h"

enum { PACKETS = 2000, LOSS = 50 };
#define SEND_EVERY_NS (100 * TW_MICROSECOND)
#define ROUND_TRIP_NS (500 * TW_MICROSECOND)
#define RESEND_AFTER_NS (5 * TW_MILLISECOND)

struct packet {
	tw_timer resend;
	uint64_t sent_ns;
};

static struct packet packets[PACKETS];
static int acknowledged, resent;

/* The packet's only timer: it runs, or an acknowledgement has cancelled it. */
static void send_again(void *arg)
{
	(void)arg;
	resent++;
	acknowledged++; /* this time it arrives */
}

/* What the device has: the acknowledgements of the packets that are a round trip old. */
static int poll_device(tw_service *service, int oldest, int sent, uint64_t now_ns)
{
	for (; oldest < sent && packets[oldest].sent_ns + ROUND_TRIP_NS <= now_ns; oldest++) {
		struct packet *p = &packets[oldest];
		if (oldest % LOSS == 0)
			continue; /* lost */
		if (tw_cancel(service, p->resend) == TW_CANCELLED)
			acknowledged++; /* not too late */
	}
	return oldest;
}

int main(void)
{
	struct tw_service_config config = TW_INIT(tw_service_config);
	config.drive = TW_DRIVE_MANUAL;
	config.executor = tw_executor_inline(); /* callbacks run in this loop */
	config.tick_ns = 100 * TW_MICROSECOND;
	tw_service *service;
	if (tw_service_create(&service, &config) != 0)
		return 1;
	uint64_t begin_ns = tw_service_now(service), next_ns = 0;
	long rounds = 0, advances = 0;
	int sent = 0, oldest = 0;
	while (acknowledged < PACKETS) {
		uint64_t now_ns = tw_service_now(service); /* once a round */
		oldest = poll_device(service, oldest, sent, now_ns);
		if (sent < PACKETS && now_ns >= begin_ns + (uint64_t)sent * SEND_EVERY_NS) {
			struct packet *p = &packets[sent++];
			p->sent_ns = now_ns;
			if (tw_schedule_at(service, now_ns + RESEND_AFTER_NS, send_again, p,
					   &p->resend) != 0)
				return 1;
			next_ns = 0; /* the next expiry may be an earlier one */
		}
		if (now_ns >= next_ns) { /* last in the round */
			tw_service_advance(service, TW_NO_LIMIT);
			tw_service_next_expiry(service, &next_ns);
			advances++;
		}
		rounds++;
	}
	printf("%d packets, %d acknowledged, %d of them sent again\n", sent, acknowledged, resent);
	printf("%s of the rounds turned the wheel\n",
	       advances * 10 < rounds ? "less than a tenth" : "many");
	tw_service_destroy(service);
	return resent >= PACKETS / LOSS ? 0 : 1;
}
