/*
 * What may be late, and why. The library promises 2 ticks plus dispatch while the machine keeps up.
 * Here the machine is kept busy on purpose. So the server's own measurement, from a timer's exact
 * deadline to the first line of its callback, may be
 *
 *   2 ticks + the longest wait of a due timer for a worker (dispatch)
 *           + the longest oversleep of the control thread.
 *
 * A client sees more: its bytes wait for the loop, the loop has to take the notice and act, and the
 * client's own thread has to see the end. These are measured too (the loop's hand-back and its
 * turns, the clients' turns), and are added. The lower bound is exact: nothing may come early, not
 * even by a nanosecond.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/demo/instant.h"
#include "examples/demo/verdict.h"

struct bounds {
	uint64_t server_ns, client_ns;
};

static unsigned failures;

__attribute__((format(printf, 2, 3))) static void check(bool holds, const char *text, ...)
{
	va_list values;
	printf("  %s  ", holds ? "PASS" : "FAIL");
	va_start(values, text);
	vprintf(text, values);
	va_end(values);
	putchar('\n');
	failures += !holds;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static struct bounds bounds_of(const struct evidence *e)
{
	uint64_t ticks_ns = 2 * e->tick_ns, wait_ns = page_value(e->page, "wait_max_ns");
	uint64_t oversleep_ns = (uint64_t)sample_percentile_ns(e->oversleep, 100);
	uint64_t hand_back_ns = page_value(e->page, "hand_back_max_ns");
	uint64_t loop_ns = larger(hand_back_ns, page_value(e->page, "turn_max_ns"));
	uint64_t clients_ns = e->clients->longest_turn_ns;
	struct bounds b = {.server_ns = ticks_ns + wait_ns + oversleep_ns};
	b.client_ns = b.server_ns + loop_ns + hand_back_ns + clients_ns + oversleep_ns;
	printf("\nallowed lateness, ms: in the server %.2f = 2 ticks %.2f + longest wait for a "
	       "worker %.2f + control "
	       "thread's longest oversleep %.2f\n",
	       in_ms(b.server_ns), in_ms(ticks_ns), in_ms(wait_ns), in_ms(oversleep_ns));
	printf("                      at a client %.2f = the same + way in %.2f + way back %.2f + "
	       "clients' turn %.2f + "
	       "oversleep %.2f\n",
	       in_ms(b.client_ns), in_ms(loop_ns), in_ms(hand_back_ns), in_ms(clients_ns),
	       in_ms(oversleep_ns));
	printf("control thread: %zu sleeps to the next tick, late by %.2f ms (median), %.2f (p99), "
	       "%.2f (longest)\n",
	       e->oversleep->count, in_ms((uint64_t)sample_percentile_ns(e->oversleep, 50)),
	       in_ms((uint64_t)sample_percentile_ns(e->oversleep, 99)), in_ms(oversleep_ns));
	return b;
}

/* One kind of those that must be cut off: all of them, none too early, none too late. */
static void judge_cut_off(const struct evidence *e, enum client_kind k, uint64_t allowed_ns)
{
	const struct kind *kind = &e->clients->kinds[k];
	struct sample late = {0};
	for (size_t i = 0; i < e->clients->count; i++) {
		const struct client *c = &e->clients->all[i];
		if (c->kind == k && c->ended_ns != 0)
			sample_add(&late, (int64_t)(c->ended_ns - c->since_ns) -
					      (int64_t)kind->timeout_ns);
	}
	int64_t first_ns = sample_percentile_ns(&late, 0),
		last_ns = sample_percentile_ns(&late, 100);
	bool holds = late.count == kind->count && first_ns >= 0 && last_ns <= (int64_t)allowed_ns;
	check(holds,
	      "%-26s %5zu of %5u cut off after their %" PRIu64
	      " s and %6.2f .. %6.2f ms (median %5.2f, p99 %6.2f)",
	      kind->does, late.count, kind->count, kind->timeout_ns / NS_PER_S,
	      (double)first_ns / 1e6, (double)last_ns / 1e6,
	      (double)sample_percentile_ns(&late, 50) / 1e6,
	      (double)sample_percentile_ns(&late, 99) / 1e6);
	sample_free(&late);
}

static unsigned expected(const struct evidence *e, uint64_t enum_mask)
{
	unsigned sum = 0;
	for (unsigned k = 0; k < CLIENT_KINDS; k++)
		if (enum_mask & (UINT64_C(1) << k))
			sum += e->clients->kinds[k].count;
	return sum;
}

static uint64_t figure(const struct evidence *e, const char *timeout, const char *what)
{
	char name[64];
	snprintf(name, sizeof(name), "%s_%s", timeout, what);
	return page_value(e->page, name);
}

/* The server's side: it must have cut off these and no others, also not wrk's connections. */
static void judge_timeout(const struct evidence *e, const char *timeout, unsigned count,
			  uint64_t allowed_ns)
{
	bool in_time =
	    figure(e, timeout, "early") == 0 && figure(e, timeout, "max_ns") <= allowed_ns;
	check(figure(e, timeout, "count") == count && in_time,
	      "%-8s timers: %5" PRIu64 " ran (%u expected), %" PRIu64
	      " early, late by %5.2f ms (median) %6.2f (p99) %6.2f (longest)",
	      timeout, figure(e, timeout, "count"), count, figure(e, timeout, "early"),
	      in_ms(figure(e, timeout, "p50_ns")), in_ms(figure(e, timeout, "p99_ns")),
	      in_ms(figure(e, timeout, "max_ns")));
}

static void judge_answers(const struct evidence *e, uint64_t allowed_ns)
{
	check(figure(e, "answer", "early") == 0 && figure(e, "answer", "max_ns") <= allowed_ns &&
		  figure(e, "answer", "count") > 0,
	      "%-8s timers: %5" PRIu64 " ran, %" PRIu64
	      " early, late by %5.2f ms (median) %6.2f (p99) %6.2f (longest)",
	      "answer", figure(e, "answer", "count"), figure(e, "answer", "early"),
	      in_ms(figure(e, "answer", "p50_ns")), in_ms(figure(e, "answer", "p99_ns")),
	      in_ms(figure(e, "answer", "max_ns")));
}

#define BIT(kind) (UINT64_C(1) << (kind))

static void judge_server_side(const struct evidence *e, uint64_t allowed_ns)
{
	judge_timeout(e, "head",
		      expected(e, BIT(CLIENT_SILENT) | BIT(CLIENT_CROWD) | BIT(CLIENT_HALF_HEAD) |
				      BIT(CLIENT_TRICKLE)),
		      allowed_ns);
	judge_timeout(e, "idle", expected(e, BIT(CLIENT_QUIET)), allowed_ns);
	judge_timeout(e, "request", expected(e, BIT(CLIENT_OVERLONG) | BIT(CLIENT_DEAF)),
		      allowed_ns);
	judge_timeout(e, "ban", expected(e, BIT(CLIENT_VILLAIN)), allowed_ns);
	judge_answers(e, allowed_ns);
}

/*
 * Active clients: none was cut off, and all had their answers. They must have been active
 * themselves, too.
 */
static void judge_active(const struct evidence *e, enum client_kind k)
{
	const struct kind *kind = &e->clients->kinds[k];
	unsigned open = 0, answers = 0, wrong = 0;
	uint64_t slowest_ns = 0, soonest_ns = NEVER;
	for (size_t i = 0; i < e->clients->count; i++) {
		const struct client *c = &e->clients->all[i];
		if (c->kind != k)
			continue;
		open += c->fd >= 0 && c->ended_ns == 0;
		answers += c->answered;
		wrong += c->status != 200 || c->answered + 1 < c->asked;
		slowest_ns = larger(slowest_ns, c->slowest_ns);
		soonest_ns = c->soonest_ns < soonest_ns ? c->soonest_ns : soonest_ns;
	}
	bool in_time = k != CLIENT_PATIENT || soonest_ns >= 300 * NS_PER_MS;
	check(open == kind->count && wrong == 0 && in_time,
	      "%-26s %5u of %5u still connected, %u answers, %u wrong", kind->does, open,
	      kind->count, answers, wrong);
	if (slowest_ns > 0)
		printf("        (the longest that one of them let the server wait: %.0f ms)\n",
		       in_ms(slowest_ns));
	if (k == CLIENT_PATIENT)
		printf("        (the soonest of their answers came after %.3f ms)\n",
		       in_ms(soonest_ns));
}

/* A client knocks every 20 ms, so it sees the end of a ban that much later. */
static void judge_bans(const struct evidence *e, uint64_t allowed_ns)
{
	struct sample late = {0};
	unsigned count = e->clients->kinds[CLIENT_VILLAIN].count, refused = 0, fewest = UINT32_MAX;
	for (size_t i = 0; i < e->clients->count; i++) {
		const struct client *c = &e->clients->all[i];
		if (c->kind != CLIENT_VILLAIN || c->welcomed_ns == 0 || c->status != 200)
			continue;
		sample_add(&late, (int64_t)(c->welcomed_ns - c->since_ns) -
				      (int64_t)e->clients->limits.ban_ns);
		refused += c->refusals;
		fewest = c->refusals < fewest ? c->refusals : fewest;
	}
	int64_t first_ns = sample_percentile_ns(&late, 0),
		last_ns = sample_percentile_ns(&late, 100);
	bool in_time = first_ns >= 0 && last_ns <= (int64_t)(allowed_ns + 20 * NS_PER_MS);
	check(late.count == count && in_time && fewest > 0 &&
		  refused == page_value(e->page, "refused"),
	      "%-26s %5zu of %5u refused %u times in all, welcome %.2f .. %.2f ms after their "
	      "%" PRIu64 " s",
	      e->clients->kinds[CLIENT_VILLAIN].does, late.count, count, refused,
	      (double)first_ns / 1e6, (double)last_ns / 1e6, e->clients->limits.ban_ns / NS_PER_S);
	sample_free(&late);
}

/*
 * Not a check, since the machine takes part: how many saw their end within the library's own two
 * ticks.
 */
static void tell_share_within_ticks(const struct evidence *e)
{
	unsigned all = 0, within = 0;
	for (size_t i = 0; i < e->clients->count; i++) {
		const struct client *c = &e->clients->all[i];
		uint64_t timeout_ns = e->clients->kinds[c->kind].timeout_ns;
		if (timeout_ns == 0 || c->ended_ns == 0)
			continue;
		all++;
		within += c->ended_ns - c->since_ns <= timeout_ns + 2 * e->tick_ns;
	}
	printf("        (%u of these %u clients saw their end within 2 ticks)\n", within, all);
}

static void judge_load(const struct evidence *e)
{
	const char *requests = strstr(e->load->output, "Requests/sec:");
	const char *errors = strstr(e->load->output, "Socket errors:");
	const char *refused = strstr(e->load->output, "Non-2xx");
	double per_s = requests != NULL ? strtod(requests + 13, NULL) : 0;
	check(e->load_status == 0 && per_s > 0 && errors == NULL && refused == NULL,
	      "wrk: %.0f requests/s, %s, %s", per_s,
	      errors == NULL ? "no socket errors" : "SOCKET ERRORS",
	      refused == NULL ? "all answered 200" : "NOT ALL ANSWERED 200");
	if (errors != NULL || refused != NULL || per_s == 0)
		fputs(e->load->output, stdout);
}

static void judge_ledger(const struct evidence *e)
{
	const char *ledger = strstr(e->server->output, "ledger: ");
	bool holds =
	    e->server_status == 0 && ledger != NULL && strstr(ledger, ": balanced") != NULL;
	check(holds, "server's exit status %d; %.*s", e->server_status,
	      ledger != NULL ? (int)strcspn(ledger, "\n") : 9,
	      ledger != NULL ? ledger : "no ledger");
	if (!holds)
		fputs(e->server->output, stdout);
}

static void judge_books(const struct evidence *e)
{
	unsigned active =
	    expected(e, BIT(CLIENT_STEADY) | BIT(CLIENT_HALTING) | BIT(CLIENT_PATIENT));
	check(page_value(e->page, "open") == active + 1,
	      "at the end %" PRIu64
	      " connections were left: %u active clients and the one that asked",
	      page_value(e->page, "open"), active);
	check(page_value(e->page, "rejected") == 0 && page_value(e->page, "full") == 0 &&
		  e->clients->failed == 0,
	      "no timer rejected, no connection turned away for want of room; %" PRIu64
	      " timeouts lost the race against a touch or a cancel",
	      page_value(e->page, "stale"));
}

bool verdict(const struct evidence *e)
{
	struct bounds b = bounds_of(e);
	printf("\nVerdict, from the clients' side\n");
	for (unsigned k = 0; k < FIRST_ACTIVE; k++)
		judge_cut_off(e, k, b.client_ns);
	tell_share_within_ticks(e);
	for (unsigned k = FIRST_ACTIVE; k < CLIENT_VILLAIN; k++)
		judge_active(e, k);
	judge_bans(e, b.client_ns);
	judge_load(e);
	printf("Verdict, from the server's side\n");
	judge_server_side(e, b.server_ns);
	judge_books(e);
	judge_ledger(e);
	return failures == 0;
}
