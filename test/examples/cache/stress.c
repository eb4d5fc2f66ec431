/*
 * stress PORT EXPIRIES [CLIENTS]: clients set, move, rename, persist, overwrite and delete keys
 * with short times to live, until EXPIRIES keys have expired. Each client knows its own keys, and
 * between which instants each must end; so it finds every key that is gone too early or visible too
 * late. All clients share some keys besides, without knowing what becomes of them: their races are
 * the server's to survive. A subscriber counts `expired` events.
 *
 * At the end: one event for each expired key, and the server's ledgers balance.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

#include "test/examples/cache/wire.h"

#define KEYS 512
#define SHARED 64
#define BATCH 64
#define MS UINT64_C(1000000)
#define MAX_CLIENTS 64
#define LONGEST_TTL_MS 40

enum kind { ABSENT, VOLATILE, LASTING };

struct key {
	enum kind kind;
	uint64_t from_ns, until_ns; /* a volatile key ends between these instants */
};

enum what {
	SET_PX,
	SET_LASTING,
	GET,
	PEXPIRE,
	PERSIST,
	DEL,
	APPEND,
	GETEX,
	RENAME,
	SHARED_KEY,
	WHATS
};

struct op {
	enum what what;
	unsigned key, other, ttl_ms;
};

static int port;
static uint64_t wanted;
static _Atomic bool stop;
static _Atomic uint64_t early, late, odd, events, checked, seen_expired;

struct client {
	pthread_t thread;
	unsigned number;
	uint64_t random;
	struct wire *wire;
	struct key keys[KEYS];
	struct op ops[BATCH];
};

static unsigned draw(struct client *c, unsigned below)
{
	c->random ^= c->random << 13; /* Marsaglia, 2003 */
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return (unsigned)((c->random >> 20) % below);
}

static void send_shared(struct client *c, unsigned key)
{
	static const char *const forms[] = {
	    "SET s%u x PX 2", "SET s%u yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy PX 1",
	    "PEXPIRE s%u 1",  "PEXPIRE s%u 5",
	    "PERSIST s%u",    "DEL s%u",
	    "SET s%u z",      "APPEND s%u abcdef",
	    "GETEX s%u PX 1", "GETDEL s%u",
	    "RENAME s%u s%u", "SET s%u w KEEPTTL"};
	wire_add(c->wire, forms[draw(c, 12)], key, draw(c, SHARED));
}

/* The client, the key, then the time to live or another key of the client. */
static void send_op(struct client *c, const struct op *op)
{
	static const char *const forms[WHATS] = {
	    [SET_PX] = "SET c%u:%u value PX %u",
	    [SET_LASTING] = "SET c%u:%u lasting",
	    [GET] = "GET c%u:%u",
	    [PEXPIRE] = "PEXPIRE c%u:%u %u",
	    [PERSIST] = "PERSIST c%u:%u",
	    [DEL] = "DEL c%u:%u",
	    [APPEND] = "APPEND c%u:%u 0123456789012345678901234567890123456789",
	    [GETEX] = "GETEX c%u:%u PX %u",
	};
	unsigned n = c->number;
	if (op->what == SHARED_KEY)
		send_shared(c, op->key);
	else if (op->what == RENAME)
		wire_add(c->wire, "RENAME c%u:%u c%u:%u", n, op->key, n, op->other);
	else
		wire_add(c->wire, forms[op->what], n, op->key, op->ttl_ms);
}

/*
 * Whether the server's view, that the key is there, can be right for a command between these
 * instants.
 */
static void check(struct client *c, const struct op *op, bool is_there, uint64_t sent_ns,
		  uint64_t replied_ns)
{
	const struct key *k = &c->keys[op->key];
	atomic_fetch_add_explicit(&checked, 1, memory_order_relaxed);
	if (k->kind == ABSENT ? is_there : k->kind == LASTING && !is_there) {
		if (atomic_fetch_add(&odd, 1) == 0)
			printf("client %u key %u: kind %d, op %d, is there: %d\n", c->number,
			       op->key, k->kind, op->what, is_there);
	} else if (k->kind == VOLATILE && !is_there && replied_ns < k->from_ns) {
		if (atomic_fetch_add(&early, 1) == 0)
			printf("client %u key %u: gone %" PRIu64 " ns early\n", c->number, op->key,
			       k->from_ns - replied_ns);
	} else if (k->kind == VOLATILE && is_there && sent_ns > k->until_ns) {
		if (atomic_fetch_add(&late, 1) == 0)
			printf("client %u key %u: visible %" PRIu64 " ns late\n", c->number,
			       op->key, sent_ns - k->until_ns);
	}
}

/* Times to live are rounded up to milliseconds of the server's clock. */
static struct key ends_after(uint64_t sent_ns, uint64_t replied_ns, unsigned ttl_ms)
{
	return (struct key){VOLATILE, sent_ns + ttl_ms * MS, replied_ns + (ttl_ms + 1) * MS};
}

static void take_reply(struct client *c, const struct op *op, const struct wire_reply *r,
		       uint64_t sent_ns, uint64_t replied_ns)
{
	struct key *k = &c->keys[op->key];
	struct key renewed = ends_after(sent_ns, replied_ns, op->ttl_ms);
	bool is_there = r->type == ':'   ? r->number != 0
			: r->type == '$' ? r->number >= 0
					 : r->type == '+';
	switch (op->what) {
	case SET_PX:
		*k = renewed;
		break;
	case SET_LASTING:
		k->kind = LASTING;
		break;
	case GET:
		check(c, op, is_there, sent_ns, replied_ns);
		break;
	case PEXPIRE:
	case GETEX:
		check(c, op, is_there, sent_ns, replied_ns);
		*k = is_there ? renewed : (struct key){0};
		break;
	case DEL:
		check(c, op, is_there, sent_ns, replied_ns);
		k->kind = ABSENT;
		break;
	case PERSIST:
		if (k->kind == VOLATILE)
			check(c, op, is_there, sent_ns, replied_ns);
		if (k->kind == VOLATILE)
			k->kind = is_there ? LASTING : ABSENT;
		break;
	case APPEND: /* 40: the key was not there, and is made without a deadline */
		check(c, op, r->number != 40, sent_ns, replied_ns);
		if (r->number == 40)
			k->kind = LASTING;
		break;
	case RENAME:
		check(c, op, is_there, sent_ns, replied_ns);
		if (is_there)
			c->keys[op->other] = *k;
		k->kind = ABSENT;
		break;
	default:
		break;
	}
}

/*
 * Each key at most once in a batch: so its requests are sent and replied between the same two
 * instants.
 */
static void plan(struct client *c)
{
	static const unsigned char weights[WHATS] = {34, 2, 14, 12, 4, 5, 5, 6, 6, 12};
	unsigned first = draw(c, KEYS);
	for (unsigned i = 0; i < BATCH; i++) {
		struct op *op = &c->ops[i];
		unsigned at = draw(c, 100), what = 0;
		while (at >= weights[what])
			at -= weights[what++];
		*op = (struct op){(enum what)what, (first + 2 * i) % KEYS,
				  (first + 2 * i + 1) % KEYS, 1 + draw(c, LONGEST_TTL_MS)};
		if (op->what == SHARED_KEY)
			op->key = draw(c, SHARED);
	}
}

static void *run_client(void *arg)
{
	struct client *c = arg;
	c->wire = wire_open(port);
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		plan(c);
		uint64_t sent_ns = wire_now_ns();
		for (unsigned i = 0; i < BATCH; i++)
			send_op(c, &c->ops[i]);
		wire_flush(c->wire);
		for (unsigned i = 0; i < BATCH; i++) {
			struct wire_reply r = wire_read(c->wire);
			take_reply(c, &c->ops[i], &r, sent_ns, wire_now_ns());
		}
	}
	wire_close(c->wire);
	return NULL;
}

/* Counts events until the "end" message comes on its own channel. */
static void *run_subscriber(void *arg)
{
	struct wire *w = arg;
	struct wire_reply r;
	while (wire_try_read(w, &r)) {
		if (r.type == '$' && strcmp(r.text, "__keyevent@0__:expired") == 0)
			atomic_fetch_add_explicit(&events, 1, memory_order_relaxed);
		else if (r.type == '$' && strcmp(r.text, "the_end") == 0)
			return NULL;
	}
	wire_die("the subscriber was disconnected");
	return NULL;
}

static struct wire *subscribe(void)
{
	struct wire *w = wire_open(port);
	wire_add(w, "SUBSCRIBE __keyevent@0__:expired end");
	wire_flush(w);
	for (int i = 0; i < 8; i++) /* two replies of an array, two bulks and a number each */
		wire_read(w);
	return w;
}

static void wait_for(struct wire *w, const char *name, bool (*done)(uint64_t))
{
	while (!done(wire_info(w, name)))
		usleep(20000);
}

static bool enough(uint64_t n)
{
	atomic_store(&seen_expired, n);
	return n >= wanted || atomic_load(&early) + atomic_load(&late) + atomic_load(&odd) > 0;
}

static bool none(uint64_t n)
{
	return n == 0;
}

/* The server's own accounts, when nothing moves any more. */
static bool balances(struct wire *w, uint64_t *expired)
{
	uint64_t made = wire_info(w, "deadlines_made:"),
		 otherwise = wire_info(w, "deadlines_ended_otherwise:");
	uint64_t scheduled = wire_info(w, "timers_scheduled:"),
		 fired = wire_info(w, "timers_fired:");
	uint64_t cancelled = wire_info(w, "timers_cancelled:");
	uint64_t in_flight = wire_info(w, "timers_met_in_flight:"),
		 moved = wire_info(w, "timers_moved:");
	*expired = wire_info(w, "expired_keys:");
	printf("deadlines: %" PRIu64 " made = %" PRIu64 " expired + %" PRIu64
	       " ended otherwise; timers: %" PRIu64 " scheduled = %" PRIu64 " fired + %" PRIu64
	       " cancelled; %" PRIu64 " moved, %" PRIu64 " met in flight\n",
	       made, *expired, otherwise, scheduled, fired, cancelled, moved, in_flight);
	return made == *expired + otherwise && scheduled == fired + cancelled;
}

int main(int argc, char **argv)
{
	static struct client clients[MAX_CLIENTS];
	unsigned count = argc > 3 ? (unsigned)atoi(argv[3]) : 8;
	pthread_t subscriber;
	uint64_t expired;
	if (argc < 3 || count < 1 || count > MAX_CLIENTS) {
		fputs("usage: stress PORT EXPIRIES [CLIENTS]\n", stderr);
		return 2;
	}
	port = atoi(argv[1]);
	struct wire *control = wire_open(port);
	wire_ask(control, "FLUSHALL");
	wire_ask(control, "CONFIG SET notify-keyspace-events Ex");
	uint64_t before = wire_info(control, "expired_keys:");
	wanted = before + strtoull(argv[2], NULL, 10);
	struct wire *listener = subscribe();
	pthread_create(&subscriber, NULL, run_subscriber, listener);
	for (unsigned i = 0; i < count; i++) {
		clients[i].number = i;
		clients[i].random = 0x9e3779b97f4a7c15 * (i + 1);
		pthread_create(&clients[i].thread, NULL, run_client, &clients[i]);
	}
	wait_for(control, "expired_keys:", enough);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < count; i++)
		pthread_join(clients[i].thread, NULL);
	wait_for(control, "deadlines_present:", none);
	wait_for(control, "timers_pending:", none);
	bool balanced = balances(control, &expired);
	wire_ask(control, "PUBLISH end the_end");
	pthread_join(subscriber, NULL);
	wire_close(listener);
	wire_close(control);
	bool right = early + late + odd == 0 && balanced && events == expired - before;
	printf("%" PRIu64 " keys expired, %" PRIu64 " events, %" PRIu64 " replies checked: %" PRIu64
	       " early, %" PRIu64 " late, %" PRIu64 " odd, ledgers %s: %s\n",
	       expired - before, atomic_load(&events), atomic_load(&checked), atomic_load(&early),
	       atomic_load(&late), atomic_load(&odd), balanced ? "balance" : "DO NOT BALANCE",
	       right ? "ok" : "FAILED");
	return right ? 0 : 1;
}
