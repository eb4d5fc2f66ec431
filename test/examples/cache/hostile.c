/*
 * hostile PORT CASE: what a server must survive from its clients. After each case the server serves
 * another client immediately, and its memory has stayed within bounds.
 *
 *   killed       clients that are killed in the middle of commands, or while subscribed
 *   half         half a command, then silence; half of a large value; a reset connection
 *   deaf         clients that never read the replies: disconnected when these reach the limit
 *   long         64 MiB of commands, written before the first reply is read
 *   slow         a subscriber that never reads: it is disconnected, and the publisher never waits
 *   crowd        10,000 connections to a server that may have far fewer descriptors
 *   garbage      random bytes, with some grammar in them
 *   page         a form that a web page posts to the port: nothing in it is run
 */
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "test/examples/cache/wire.h"

#define CROWD 10000
#define DEAF 6
#define BATCH 100
#define MIB (UINT64_C(1) << 20)

static int port;
static uint64_t state = 88172645463325252;

static uint64_t draw(uint64_t below)
{
	state ^= state << 13; /* Marsaglia, 2003 */
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

static int failures;

static void expect(bool what, const char *text)
{
	if (what)
		return;
	printf("hostile: failed: %s\n", text);
	failures++;
}

static void send_text(int fd, const char *text)
{
	if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET)
		wire_die("send");
}

/* Another client is served. */
static void expect_service(void)
{
	struct wire *w = wire_open(port);
	expect(wire_ask(w, "SET alive yes").type == '+', "SET by another client");
	struct wire_reply r = wire_ask(w, "GET alive");
	expect(r.type == '$' && strcmp(r.text, "yes") == 0, "GET by another client");
	wire_close(w);
}

static uint64_t info(const char *name)
{
	struct wire *w = wire_open(port);
	uint64_t n = wire_info(w, name);
	wire_close(w);
	return n;
}

/* Waits until the server has noticed that all clients but the asking one are gone. */
static void expect_alone(void)
{
	uint64_t clients = 0;
	for (int i = 0; i < 600 && (clients = info("connected_clients:")) != 1; i++)
		usleep(50000);
	expect(clients == 1, "all clients that went are forgotten");
}

/* ------------------------------------------------------------------ killed */

static void be_killed(unsigned number)
{
	struct wire *w = wire_open(port);
	wire_add(w, number % 3 == 0 ? "SUBSCRIBE __keyevent@0__:expired" : "PING");
	for (;;) {
		wire_flush(w);
		for (unsigned i = 0; number % 3 != 0 && i < 100; i++)
			wire_add(w, "SET k%u:%u value PX %u", number, i, 1 + i % 10);
		if (number % 3 == 1)
			wire_read(w);
	}
}

static void killed(void)
{
	struct wire *w = wire_open(port);
	wire_ask(w, "CONFIG SET notify-keyspace-events KEA");
	wire_close(w);
	for (unsigned round = 0; round < 4; round++) {
		pid_t children[12];
		for (unsigned i = 0; i < 12; i++) {
			children[i] = fork();
			if (children[i] == 0)
				be_killed(round * 12 + i);
		}
		usleep(20000);
		for (unsigned i = 0; i < 12; i++) {
			kill(children[i], SIGKILL);
			waitpid(children[i], NULL, 0);
		}
		expect_service();
	}
	expect_alone();
}

/* ------------------------------------------------------------------ half */

static void half(void)
{
	static const char *const parts[] = {"*",
					    "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100",
					    "*2\r\n$3\r\nGET\r\n$5\r\nab",
					    "SET inline",
					    "*1000000\r\n$1\r\na\r\n",
					    "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$500000000\r\nbegins"};
	int fds[600];
	uint64_t before = info("used_memory_rss:");
	for (int i = 0; i < 600; i++) {
		fds[i] = wire_connect(port);
		send_text(fds[i], parts[i % 6]);
	}
	expect_service();
	expect(info("used_memory_rss:") < before + 32 * MIB,
	       "half commands hold what was sent, not what was announced");
	for (int i = 0; i < 600; i++) {
		struct linger reset = {.l_onoff = 1};
		if (i % 2 == 0)
			setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(fds[i]);
	}
	expect_alone();
}

/* ------------------------------------------------------------------ deaf */

/* Sends until the server ends the connection. */
static bool send_until_ended(int fd, const char *text)
{
	uint64_t sent = 0;
	while (sent < 64 * MIB) {
		ssize_t n = send(fd, text, strlen(text), MSG_NOSIGNAL);
		if (n < 0)
			return errno == EPIPE || errno == ECONNRESET;
		sent += (uint64_t)n;
	}
	return false;
}

static void deaf(void)
{
	static char value[100001];
	struct wire *w = wire_open(port);
	memset(value, 'v', 100000);
	wire_ask(w, "SET large x");
	for (int i = 0; i < 100; i++) {
		wire_ask(w, "APPEND large %.900s", value);
		wire_ask(w, "APPEND large %.100s", value);
	}
	uint64_t before = wire_info(w, "used_memory_rss:"),
		 ended = wire_info(w, "client_output_buffer_limit_disconnections:");
	for (int i = 0; i < DEAF; i++) {
		int fd = wire_connect(port);
		expect(send_until_ended(fd, "GET large\r\nGET large\r\nGET large\r\n"),
		       "a client that reads no replies is disconnected");
		uint64_t start = wire_now_ns();
		expect_service();
		expect(wire_now_ns() - start < 5000000000, "another client is served at once");
		close(fd);
	}
	expect(wire_info(w, "client_output_buffer_limit_disconnections:") == ended + DEAF,
	       "each is counted");
	/* the thread of the last one counts it, then closes it */
	uint64_t until = wire_now_ns() + 5000000000, now;
	do
		now = wire_info(w, "used_memory_rss:");
	while (now >= before + 128 * MIB && wire_now_ns() < until);
	expect(now < before + 128 * MIB, "the memory of their replies is given back");
	wire_close(w);
	expect_alone();
}

/* ------------------------------------------------------------------ long */

/* A client may write all of a long pipeline before it reads: the server reads on meanwhile. */
static void send_long(void)
{
	static const char request[] = "*3\r\n$3\r\nSET\r\n$4\r\nlong\r\n$32\r\n"
				      "0123456789abcdef0123456789abcdef\r\n";
	const size_t length = sizeof(request) - 1, count = 64 * MIB / length + 1;
	char *all = malloc(count * length), replies[65536];
	struct timeval patience = {.tv_sec = 60};
	int fd = wire_connect(port);
	size_t got = 0;
	for (size_t i = 0; i < count; i++)
		memcpy(all + i * length, request, length);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	expect(send(fd, all, count * length, MSG_NOSIGNAL) == (ssize_t)(count * length),
	       "64 MiB are taken before the first reply is read");
	for (ssize_t n; got < 5 * count && (n = recv(fd, replies, sizeof(replies), 0)) > 0;)
		got += (size_t)n;
	expect(got == 5 * count, "each command has its reply");
	free(all);
	close(fd);
	expect_alone();
}

/* ------------------------------------------------------------------ slow */

static void slow(void)
{
	static char message[901];
	struct wire *w = wire_open(port);
	int fd = wire_connect(port);
	uint64_t before = wire_info(w, "client_output_buffer_limit_disconnections:");
	memset(message, 'm', 900);
	send_text(fd, "SUBSCRIBE news\r\n");
	usleep(50000);
	uint64_t resident = wire_info(w, "used_memory_rss:"), longest = 0, sent = 0;
	while (sent < 200 * MIB &&
	       wire_info(w, "client_output_buffer_limit_disconnections:") == before) {
		uint64_t start = wire_now_ns();
		for (int i = 0; i < 200; i++, sent += 900)
			wire_add(w, "PUBLISH news %s", message);
		wire_flush(w);
		for (int i = 0; i < 200; i++)
			wire_read(w);
		uint64_t took = wire_now_ns() - start;
		longest = took > longest ? took : longest;
	}
	expect(wire_info(w, "client_output_buffer_limit_disconnections:") == before + 1,
	       "the slow subscriber is disconnected");
	expect(longest < 5000000000, "the publisher does not wait for it");
	expect(wire_info(w, "used_memory_rss:") < resident + 128 * MIB, "its mail is bounded");
	wire_close(w);
	close(fd);
	expect_alone();
}

/* ------------------------------------------------------------------ crowd */

static void crowd(void)
{
	static int fds[CROWD];
	struct rlimit files;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	int most = files.rlim_cur < CROWD + 64 ? (int)files.rlim_cur - 64 : CROWD;
	uint64_t limit = info("maxclients:");
	struct wire *first = wire_open(port);
	int accepted = 0, refused = 0;
	for (int i = 0; i < most; i++)
		if ((fds[i] = wire_connect(port)) < 0)
			wire_die("connect");
	expect(wire_ask(first, "PING").type == '+', "a client from before is served in the crowd");
	for (int i = 0; i < most; i++) {
		char text[64] = "";
		send_text(fds[i], "PING\r\n");
		ssize_t n = recv(fds[i], text, sizeof(text) - 1, 0);
		accepted += n > 0 && strcmp(text, "+PONG\r\n") == 0;
		refused += n > 0 && strcmp(text, "-ERR max number of clients reached\r\n") == 0;
		/*
		 * A refused client whose command arrives after the close may get a reset before
		 * it reads the error.
		 */
		refused += n <= 0;
	}
	printf("hostile: %d connections: %d served, %d refused, limit %" PRIu64 "\n", most,
	       accepted, refused, limit);
	expect(accepted + refused == most, "each is served, or refused with the error");
	expect((uint64_t)accepted + 1 == (limit < (uint64_t)most + 1 ? limit : (uint64_t)most + 1),
	       "as many as the limit says are served");
	for (int i = 0; i < most; i++)
		close(fds[i]);
	expect(wire_ask(first, "PING").type == '+',
	       "a client from before is served after the crowd");
	wire_close(first);
	expect_alone();
	expect_service();
}

/* ------------------------------------------------------------------ garbage */

static void garbage(void)
{
	static const char *const words[] = {"*",
					    "$",
					    "\r\n",
					    "*3\r\n",
					    "$3\r\nSET\r\n",
					    "$-1\r\n",
					    "0",
					    "-1",
					    "\"",
					    "'",
					    "\\x",
					    "GET ",
					    "SET a b ",
					    "EX ",
					    "9999999999999999999",
					    "PX ",
					    "\r",
					    "\n",
					    "HELLO 3\r\n",
					    "SUBSCRIBE a\r\n",
					    "$4\r\nPING\r\n"};
	for (int i = 0; i < 2000; i++) {
		int fd = wire_connect(port);
		char text[512];
		size_t length = 0;
		while (length < 400) {
			if (draw(4) == 0) {
				text[length++] = (char)draw(256);
				continue;
			}
			const char *word = words[draw(sizeof(words) / sizeof(words[0]))];
			memcpy(text + length, word, strlen(word));
			length += strlen(word);
		}
		if (send(fd, text, length, MSG_NOSIGNAL) < 0 && errno != EPIPE &&
		    errno != ECONNRESET)
			wire_die("send");
		close(fd);
	}
	expect_service();
	expect_alone();
}

/* ------------------------------------------------------------------ page */

/* A page in a browser posts a form to this port: its body holds inline commands. */
static void page(void)
{
	static const char form[] =
	    "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 16\r\n\r\n"
	    "SET forged yes\r\n";
	char text[64];
	int fd = wire_connect(port);
	send_text(fd, form);
	expect(recv(fd, text, sizeof(text), 0) <= 0, "the connection ends without a reply");
	close(fd);
	struct wire *w = wire_open(port);
	expect(wire_ask(w, "EXISTS forged").number == 0, "and nothing in it was run");
	wire_close(w);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {{"killed", killed}, {"half", half},       {"deaf", deaf}, {"slow", slow},
		     {"crowd", crowd},   {"garbage", garbage}, {"page", page}, {"long", send_long}};
	if (argc < 3) {
		fputs("usage: hostile PORT CASE...\n", stderr);
		return 2;
	}
	port = atoi(argv[1]);
	signal(SIGPIPE, SIG_IGN);
	for (int i = 2; i < argc; i++) {
		size_t at = 0;
		while (at < sizeof(cases) / sizeof(cases[0]) &&
		       strcmp(cases[at].name, argv[i]) != 0)
			at++;
		if (at == sizeof(cases) / sizeof(cases[0])) {
			fprintf(stderr, "hostile: no case '%s'\n", argv[i]);
			return 2;
		}
		uint64_t start = wire_now_ns();
		cases[at].run();
		printf("hostile: %s: %s, %.1f s\n", argv[i], failures == 0 ? "ok" : "FAILED",
		       (double)(wire_now_ns() - start) / 1e9);
	}
	return failures > 0;
}
