/*
 * lateness PORT PID KEYS BACKGROUND MODE WAIT_S PREFIX: how late a server's `expired` events are.
 *
 * Sets KEYS keys with deadlines, beside BACKGROUND keys of one hour, and records for each key the
 * time from its deadline to the arrival of its event. MODE: spread (due in 2 to 5 s), same (all
 * due in one millisecond), renewed (as spread, after ten renewals each), settle (as spread;
 * memory is looked at some seconds after the last event), hold (no deadlines soon: bytes a key).
 * Meanwhile a client reads keys around their deadlines, and a control thread measures how late
 * the machine wakes a thread up.
 *
 * Gives up WAIT_S seconds after the last deadline. Prints one line of NAME=VALUE; writes the
 * distribution to PREFIX.lateness (fraction, milliseconds) and resident memory to PREFIX.memory
 * (seconds, MiB).
 */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "examples/cache/measure/wire.h"

#define MS INT64_C(1000000)
#define HOUR_S 3600
#define RENEWALS 10
#define CONTROL_PERIOD_NS (5 * MS)
#define MOST_CONTROL 20000
#define POINTS 1000

static int port, pid;
static int keys, background, wait_s;
static const char *mode, *prefix;
static int64_t *deadline_ms; /* Unix time of each key */
static _Atomic int64_t *arrival_ns;
static _Atomic int arrived, early, twice;
static _Atomic bool stop;
static int64_t zero_ns; /* of the memory file's time: the first deadline */

static int64_t unix_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t draw(int64_t below)
{
	static uint64_t state = 88172645463325252;
	state ^= state << 13; /* Marsaglia, 2003 */
	state ^= state >> 7;
	state ^= state << 17;
	return (int64_t)((state >> 11) % (uint64_t)below);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* ------------------------------------------------------------------ threads */

static void *subscriber(void *arg)
{
	struct wire *w = arg;
	struct wire_reply r;
	while (!atomic_load(&stop) && wire_try_read(w, &r)) {
		int index;
		if (r.type != '$' || sscanf(r.text, "key:%d", &index) != 1 || index < 0 ||
		    index >= keys)
			continue;
		int64_t now = unix_ns();
		if (now < deadline_ms[index] * MS)
			atomic_fetch_add(&early, 1);
		if (atomic_exchange(&arrival_ns[index], now) != 0)
			atomic_fetch_add(&twice, 1);
		atomic_fetch_add(&arrived, 1);
	}
	return NULL;
}

static double control_ms[MOST_CONTROL];
static int control_count;

static void *control(void *arg)
{
	uint64_t next = wire_now_ns();
	(void)arg;
	while (!atomic_load(&stop) && control_count < MOST_CONTROL) {
		next += CONTROL_PERIOD_NS;
		struct timespec at = {(time_t)(next / 1000000000), (long)(next % 1000000000)};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		uint64_t now = wire_now_ns();
		control_ms[control_count++] = (double)(now - next) / MS;
		next = now > next + 100 * (uint64_t)MS ? now : next;
	}
	return NULL;
}

static double resident_mib(void)
{
	char path[64];
	long whole, resident = 0;
	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	FILE *f = fopen(path, "r");
	if (f == NULL || fscanf(f, "%ld %ld", &whole, &resident) != 2)
		resident = 0;
	if (f != NULL)
		fclose(f);
	return (double)resident * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static void *memory(void *arg)
{
	FILE *out = arg;
	while (!atomic_load(&stop)) {
		fprintf(out, "%.2f %.2f\n", (double)(unix_ns() - zero_ns) / 1e9, resident_mib());
		usleep(50000);
	}
	return NULL;
}

/* ------------------------------------------------------------------ loading */

static void take_replies(struct wire *w, int count)
{
	wire_flush(w);
	for (int i = 0; i < count; i++)
		if (wire_read(w).type == '-')
			wire_die("the server refused a key");
}

static void load_background(struct wire *w)
{
	for (int i = 0, sent = 0; i < background; i++) {
		wire_add(w, "SET background:%07d xxxxxxxx EX %d", i, HOUR_S + (int)draw(60));
		if (++sent == 500 || i + 1 == background) {
			take_replies(w, sent);
			sent = 0;
		}
	}
}

/* Sets or renews all keys; `until` tells the deadline of each. */
static void set_all(struct wire *w, const char *format, int64_t (*until)(int))
{
	for (int i = 0, sent = 0; i < keys; i++) {
		wire_add(w, format, i, until(i));
		if (++sent == 500 || i + 1 == keys) {
			take_replies(w, sent);
			sent = 0;
		}
	}
}

static int64_t final_deadline(int i)
{
	return deadline_ms[i];
}

/* Long enough that the next renewal comes before it, on a busy machine too. */
static int64_t soon(int i)
{
	(void)i;
	return unix_ns() / MS + 1500;
}

static void load(struct wire *w)
{
	bool renews = strcmp(mode, "renewed") == 0;
	int64_t base = unix_ns() / MS + 500 + keys / 200 + (renews ? 2000 : 0), same = base + 2000;
	for (int i = 0; i < keys; i++)
		deadline_ms[i] = strcmp(mode, "same") == 0 ? same : base + 2000 + draw(3000);
	zero_ns = (base + 2000) * MS;
	for (int round = 0; renews && round < RENEWALS; round++) {
		set_all(w,
			round == 0 ? "SET key:%07d xxxxxxxx PXAT %" PRId64
				   : "PEXPIREAT key:%07d %" PRId64,
			soon);
		usleep(100000);
	}
	set_all(w, renews ? "PEXPIREAT key:%07d %" PRId64 : "SET key:%07d xxxxxxxx PXAT %" PRId64,
		final_deadline);
}

/* ------------------------------------------------------------------ probing */

static int probes, visible, gone_early;

/* A key is read; what the answer must be follows from the time of the request and of the reply. */
static void probe(struct wire *w)
{
	int i = (int)draw(keys);
	int64_t sent = unix_ns();
	bool is_there = wire_ask(w, "GET key:%07d", i).number >= 0;
	int64_t replied = unix_ns();
	probes++;
	visible += is_there && sent >= (deadline_ms[i] + 1) * MS;
	gone_early += !is_there && replied < deadline_ms[i] * MS;
}

static void wait_for_events(struct wire *w)
{
	int64_t last = 0;
	for (int i = 0; i < keys; i++)
		last = deadline_ms[i] > last ? deadline_ms[i] : last;
	while (atomic_load(&arrived) < keys && unix_ns() < (last + wait_s * 1000) * MS) {
		if (unix_ns() > zero_ns && unix_ns() < (last + 50) * MS)
			probe(w);
		usleep(1000);
	}
}

/* ------------------------------------------------------------------ results */

static double quantile(const double *sorted, int count, double q)
{
	int at = (int)ceil(q * count) - 1;
	return count == 0 ? NAN : sorted[at < 0 ? 0 : at];
}

static void write_results(void)
{
	char path[512];
	int count = 0;
	double *late = malloc(sizeof(double) * (size_t)keys);
	for (int i = 0; i < keys; i++)
		if (arrival_ns[i] != 0)
			late[count++] = (double)(arrival_ns[i] - deadline_ms[i] * MS) / MS;
	qsort(late, (size_t)count, sizeof(*late), by_size);
	qsort(control_ms, (size_t)control_count, sizeof(*control_ms), by_size);
	snprintf(path, sizeof(path), "%s.lateness", prefix);
	FILE *out = fopen(path, "w");
	if (out == NULL)
		wire_die(path);
	for (int i = 1; i <= POINTS && count > 0; i++)
		fprintf(out, "%.4f %.4f\n", (double)i / POINTS * count / keys,
			quantile(late, count, (double)i / POINTS));
	fclose(out);
	/* Quantiles over all keys: a key without an event counts as later than any. */
	printf("p50_ms=%.2f p99_ms=%.2f max_ms=%.2f ",
	       keys * 0.5 <= count ? late[(int)(keys * 0.5) - 1] : INFINITY,
	       keys * 0.99 <= count ? late[(int)(keys * 0.99) - 1] : INFINITY,
	       count == keys ? late[count - 1] : INFINITY);
	printf("keys=%d arrived=%d early=%d twice=%d probes=%d visible=%d gone_early=%d "
	       "control_p99_ms=%.2f "
	       "control_max_ms=%.2f\n",
	       keys, count, early, twice, probes, visible, gone_early,
	       quantile(control_ms, control_count, 0.99), quantile(control_ms, control_count, 1));
	free(late);
}

static void measure(struct wire *w)
{
	char path[512];
	pthread_t threads[3];
	struct wire *listener = wire_open(port);
	wire_add(listener, "SUBSCRIBE __keyevent@0__:expired");
	wire_flush(listener);
	for (int i = 0; i < 4; i++)
		wire_read(listener);
	snprintf(path, sizeof(path), "%s.memory", prefix);
	FILE *samples = fopen(path, "w");
	if (samples == NULL)
		wire_die(path);
	zero_ns = unix_ns() + 5000 * MS;
	double before = resident_mib();
	pthread_create(&threads[0], NULL, subscriber, listener);
	pthread_create(&threads[1], NULL, control, NULL);
	load(w);
	pthread_create(&threads[2], NULL, memory, samples);
	double loaded = resident_mib();
	wait_for_events(w);
	usleep(strcmp(mode, "settle") == 0 ? 3000000 : 300000);
	atomic_store(&stop, true);
	shutdown(listener->fd, SHUT_RD);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	fclose(samples);
	printf("before_mib=%.1f loaded_mib=%.1f after_mib=%.1f left=%" PRId64 " ", before, loaded,
	       resident_mib(), wire_ask(w, "DBSIZE").number - background);
	write_results();
	wire_close(listener);
}

/* Bytes a key of one hour, by the server's own account and by its resident memory. */
static void hold(struct wire *w)
{
	uint64_t used = wire_info(w, "used_memory:");
	double resident = resident_mib();
	load_background(w);
	usleep(300000);
	printf("used_bytes=%.1f resident_bytes=%.1f\n",
	       (double)(wire_info(w, "used_memory:") - used) / background,
	       (resident_mib() - resident) * (1 << 20) / background);
}

int main(int argc, char **argv)
{
	if (argc != 8) {
		fputs("usage: lateness PORT PID KEYS BACKGROUND MODE WAIT_S PREFIX\n", stderr);
		return 2;
	}
	port = atoi(argv[1]);
	pid = atoi(argv[2]);
	keys = atoi(argv[3]);
	background = atoi(argv[4]);
	mode = argv[5];
	wait_s = atoi(argv[6]);
	prefix = argv[7];
	deadline_ms = calloc((size_t)keys + 1, sizeof(*deadline_ms));
	arrival_ns = calloc((size_t)keys + 1, sizeof(*arrival_ns));
	if (deadline_ms == NULL || arrival_ns == NULL)
		return 2;
	struct wire *w = wire_open(port);
	wire_ask(w, "FLUSHALL");
	wire_ask(w, "CONFIG SET notify-keyspace-events Ex");
	if (strcmp(mode, "hold") == 0) {
		hold(w);
	} else {
		load_background(w);
		measure(w);
	}
	wire_ask(w, "FLUSHALL");
	wire_close(w);
	return 0;
}
