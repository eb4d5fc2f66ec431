/*
 * stress PORT EXPIRIES: eight clients set, move, rename, persist, overwrite and delete keys with
 * short times to live, until EXPIRIES keys have expired. Each client knows its own keys, and
 * between which instants each must end; so it finds every key that is gone too early or visible too
 * late. All clients share some keys besides, without knowing what becomes of them: their races are
 * the server's to survive. A subscriber counts `expired` events.
 *
 * At the end: one event for each expired key, and the server's ledgers balance.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS = 8, KEYS = 512, SHARED = 64, BATCH = 64, LONGEST_TTL_MS = 40 };
#define MS UINT64_C(1000000)

static int port;
static uint64_t wanted;
static _Atomic bool stop;
static _Atomic uint64_t early, late, odd, events, checked;

/* ------------------------------------------------------------------ a connection */

struct wire {
	FILE *in, *out;
	char text[16384]; /* of the last reply: a status, an error or a bulk */
};

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "stress: %s: %s\n", what, strerror(errno));
	exit(2);
}

static struct wire *wire_open(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval patience = {.tv_sec = 30};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	struct wire *w = calloc(1, sizeof(*w));
	if (w == NULL || fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		die("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if ((w->in = fdopen(fd, "r")) == NULL || (w->out = fdopen(dup(fd), "w")) == NULL)
		die("fdopen");
	return w;
}

static void wire_close(struct wire *w)
{
	fclose(w->in);
	fclose(w->out);
	free(w);
}

/* Reads a reply, or of an array its count: the elements follow. Gives its number or length. */
static int64_t wire_read(struct wire *w, char *type)
{
	if (fgets(w->text, sizeof(w->text), w->in) == NULL)
		die("no reply");
	int64_t number = strtoll(w->text + 1, NULL, 10);
	*type = w->text[0];
	if (*type == '$' && number >= 0) {
		if ((size_t)number + 2 >= sizeof(w->text) ||
		    fread(w->text, 1, (size_t)number + 2, w->in) != (size_t)number + 2)
			die("no bulk");
		w->text[number] = 0;
	}
	return number;
}

static void wire_ask(struct wire *w, const char *line)
{
	char type;
	fprintf(w->out, "%s\r\n", line);
	fflush(w->out);
	wire_read(w, &type);
}

/* The number behind NAME: in INFO's text. */
static uint64_t wire_info(struct wire *w, const char *name)
{
	wire_ask(w, "INFO");
	const char *at = strstr(w->text, name);
	return at != NULL ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* ------------------------------------------------------------------ a client and its keys */

struct key {
	enum { ABSENT, VOLATILE, LASTING } kind;
	uint64_t from_ns, until_ns; /* a volatile key ends between these instants */
};

/* What becomes of a key; RENEWED and MOVED if it was there. */
enum effect { STAYS, RENEWED, SET_ANEW, LASTS, ENDS, PERSISTS, APPENDED, MOVED, UNKNOWN };

/* The form gets the client and the key, then the time to live, for MOVED another key. */
static const struct {
	unsigned percent;
	enum effect effect;
	const char *form;
} ops[] = {
    {34, SET_ANEW, "SET c%u:%u value PX %u\r\n"},
    {2, LASTS, "SET c%u:%u lasting\r\n"},
    {14, STAYS, "GET c%u:%u\r\n"},
    {12, RENEWED, "PEXPIRE c%u:%u %u\r\n"},
    {6, RENEWED, "GETEX c%u:%u PX %u\r\n"},
    {4, PERSISTS, "PERSIST c%u:%u\r\n"},
    {5, ENDS, "DEL c%u:%u\r\n"},
    {5, APPENDED, "APPEND c%u:%u 0123456789012345678901234567890123456789\r\n"},
    {6, MOVED, "RENAME c%u:%u c%u:%u\r\n"},
    {12, UNKNOWN, NULL},
};

static const char *const shared_forms[] = {
    "SET s%u x PX 2\r\n", "SET s%u yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy PX 1\r\n",
    "PEXPIRE s%u 1\r\n",  "PEXPIRE s%u 5\r\n",
    "PERSIST s%u\r\n",    "DEL s%u\r\n",
    "SET s%u z\r\n",      "APPEND s%u abcdef\r\n",
    "GETEX s%u PX 1\r\n", "GETDEL s%u\r\n",
    "RENAME s%u s%u\r\n", "SET s%u w KEEPTTL\r\n",
};

struct client {
	pthread_t thread;
	unsigned number;
	uint64_t random;
	struct wire *wire;
	struct key keys[KEYS];
	struct op {
		unsigned what, key, other, ttl_ms;
	} batch[BATCH];
};

static unsigned draw(struct client *c, unsigned below)
{
	c->random ^= c->random << 13; /* Marsaglia, 2003 */
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return (unsigned)((c->random >> 20) % below);
}

/*
 * Each key at most once in a batch: so its requests are sent and replied between the same two
 * instants.
 */
static void plan(struct client *c)
{
	unsigned first = draw(c, KEYS);
	for (unsigned i = 0; i < BATCH; i++) {
		unsigned at = draw(c, 100), what = 0;
		while (at >= ops[what].percent)
			at -= ops[what++].percent;
		c->batch[i] = (struct op){what, (first + 2 * i) % KEYS, (first + 2 * i + 1) % KEYS,
					  1 + draw(c, LONGEST_TTL_MS)};
	}
}

static void send_op(struct client *c, const struct op *op)
{
	FILE *out = c->wire->out;
	if (ops[op->what].effect == UNKNOWN)
		fprintf(out, shared_forms[draw(c, sizeof(shared_forms) / sizeof(shared_forms[0]))],
			draw(c, SHARED), draw(c, SHARED));
	else if (ops[op->what].effect == MOVED)
		fprintf(out, ops[op->what].form, c->number, op->key, c->number, op->other);
	else
		fprintf(out, ops[op->what].form, c->number, op->key, op->ttl_ms);
}

/*
 * Whether the server's view, that the key is there or not, can be right for a command between these
 * instants.
 */
static void check(struct client *c, const struct op *op, bool is_there, uint64_t sent_ns,
		  uint64_t replied_ns)
{
	const struct key *k = &c->keys[op->key];
	_Atomic uint64_t *wrong = NULL;
	atomic_fetch_add_explicit(&checked, 1, memory_order_relaxed);
	if (k->kind == VOLATILE)
		wrong = !is_there && replied_ns < k->from_ns ? &early
			: is_there && sent_ns > k->until_ns  ? &late
							     : NULL;
	else if (is_there != (k->kind == LASTING))
		wrong = &odd;
	if (wrong != NULL && atomic_fetch_add(wrong, 1) == 0)
		printf("client %u: %s of key %u (kind %d, %" PRIu64 " to %" PRIu64
		       ") between %" PRIu64 " and %" PRIu64 ": is there: %d\n",
		       c->number, ops[op->what].form, op->key, (int)k->kind, k->from_ns,
		       k->until_ns, sent_ns, replied_ns, is_there);
}

static void take_reply(struct client *c, const struct op *op, uint64_t sent_ns)
{
	char type;
	int64_t number = wire_read(c->wire, &type);
	uint64_t replied_ns = now_ns();
	struct key *k = &c->keys[op->key];
	/* Times to live are rounded up to milliseconds of the server's clock. */
	const struct key renewed = {VOLATILE, sent_ns + op->ttl_ms * MS,
				    replied_ns + (op->ttl_ms + 1) * MS};
	enum effect effect = ops[op->what].effect;
	bool is_there = type == ':' ? number != 0 : type == '$' ? number >= 0 : type == '+';
	if (effect == APPENDED)
		is_there = number != 40; /* else the key is made, without a deadline */
	if (effect == SET_ANEW) {
		*k = renewed;
	} else if (effect == LASTS) {
		k->kind = LASTING;
	} else if (effect == PERSISTS) {
		if (k->kind == VOLATILE) {
			check(c, op, is_there, sent_ns, replied_ns);
			k->kind = is_there ? LASTING : ABSENT;
		}
	} else if (effect != UNKNOWN) {
		check(c, op, is_there, sent_ns, replied_ns);
		if (effect == RENEWED)
			*k = is_there ? renewed : (struct key){0};
		else if (effect == APPENDED && !is_there)
			k->kind = LASTING;
		else if (effect == MOVED && is_there)
			c->keys[op->other] = *k;
		if (effect == MOVED || effect == ENDS)
			k->kind = ABSENT;
	}
}

static void *run_client(void *arg)
{
	struct client *c = arg;
	c->wire = wire_open();
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		plan(c);
		uint64_t sent_ns = now_ns();
		for (unsigned i = 0; i < BATCH; i++)
			send_op(c, &c->batch[i]);
		fflush(c->wire->out);
		for (unsigned i = 0; i < BATCH; i++)
			take_reply(c, &c->batch[i], sent_ns);
	}
	wire_close(c->wire);
	return NULL;
}

/* ------------------------------------------------------------------ all of them */

/* Counts events until the message "the_end" comes. */
static void *run_subscriber(void *arg)
{
	struct wire *w = arg;
	char type;
	do {
		wire_read(w, &type);
		if (type == '$' && strcmp(w->text, "__keyevent@0__:expired") == 0)
			atomic_fetch_add_explicit(&events, 1, memory_order_relaxed);
	} while (type != '$' || strcmp(w->text, "the_end") != 0);
	return NULL;
}

static struct wire *subscribe(void)
{
	struct wire *w = wire_open();
	char type;
	wire_ask(w, "SUBSCRIBE __keyevent@0__:expired end");
	for (int i = 1; i < 8; i++) /* two replies of an array, two bulks and a number each */
		wire_read(w, &type);
	return w;
}

static void wait_for_none(struct wire *w, const char *name)
{
	while (wire_info(w, name) != 0)
		usleep(20000);
}

/* The server's own accounts, when nothing moves any more. */
static bool balances(struct wire *w, uint64_t expired)
{
	uint64_t made = wire_info(w, "deadlines_made:"),
		 otherwise = wire_info(w, "deadlines_ended_otherwise:"),
		 scheduled = wire_info(w, "timers_scheduled:"),
		 fired = wire_info(w, "timers_fired:"),
		 cancelled = wire_info(w, "timers_cancelled:");
	printf("deadlines: %" PRIu64 " made = %" PRIu64 " expired + %" PRIu64
	       " ended otherwise; timers: %" PRIu64 " scheduled = %" PRIu64 " fired + %" PRIu64
	       " cancelled\n",
	       made, expired, otherwise, scheduled, fired, cancelled);
	return made == expired + otherwise && scheduled == fired + cancelled;
}

int main(int argc, char **argv)
{
	static struct client clients[CLIENTS];
	pthread_t subscriber;
	if (argc < 3) {
		fputs("usage: stress PORT EXPIRIES\n", stderr);
		return 2;
	}
	port = atoi(argv[1]);
	struct wire *control = wire_open();
	wire_ask(control, "FLUSHALL");
	wire_ask(control, "CONFIG SET notify-keyspace-events Ex");
	uint64_t before = wire_info(control, "expired_keys:");
	wanted = before + strtoull(argv[2], NULL, 10);
	struct wire *listener = subscribe();
	pthread_create(&subscriber, NULL, run_subscriber, listener);
	for (unsigned i = 0; i < CLIENTS; i++) {
		clients[i].number = i;
		clients[i].random = 0x9e3779b97f4a7c15 * (i + 1);
		pthread_create(&clients[i].thread, NULL, run_client, &clients[i]);
	}
	while (wire_info(control, "expired_keys:") < wanted && early + late + odd == 0)
		usleep(20000);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < CLIENTS; i++)
		pthread_join(clients[i].thread, NULL);
	wait_for_none(control, "deadlines_present:");
	wait_for_none(control, "timers_pending:");
	uint64_t expired = wire_info(control, "expired_keys:");
	bool balanced = balances(control, expired);
	wire_ask(control, "PUBLISH end the_end");
	pthread_join(subscriber, NULL);
	wire_close(listener);
	wire_close(control);
	bool right = early + late + odd == 0 && balanced && events == expired - before;
	printf("%" PRIu64 " keys expired, %" PRIu64 " events, %" PRIu64 " replies checked: %" PRIu64
	       " early, %" PRIu64 " late, %" PRIu64 " odd, ledgers %s: %s\n",
	       expired - before, events, checked, early, late, odd,
	       balanced ? "balance" : "DO NOT BALANCE", right ? "ok" : "FAILED");
	return right ? 0 : 1;
}
