/*
 * replay FILE PORT: sends the commands of a table to a server and compares its replies with the
 * table's, byte for byte. replay --record FILE PORT: writes the table with the server's replies
 * to the standard output.
 *
 * A line of the table is a comment (#), or REQUEST => REPLY. The reply has the escapes \xHH, \r,
 * \n, \\, \" and \*N,c for N times the character c. A request is
 *
 *   COMMAND ARG...    a command, sent by connection 1; words in quotes may contain the same escapes
 *   N> COMMAND ...    the same by connection N (1 to 4)
 *   N~ COMMAND ...    the same; the reply, which differs from server to server, is read and ignored
 *   N<                nothing is sent: one more reply is read from connection N
 *   ! BYTES           bytes as they are, on a connection of their own; the reply is all that comes
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define CONNECTIONS 4
#define MOST (4 * 1024 * 1024)
#define LONG_RUN 50

static int port;
static int fds[CONNECTIONS + 1];
static char request[MOST], reply[MOST];

static void die(const char *what)
{
	fprintf(stderr, "replay: %s: %s\n", what, strerror(errno));
	exit(2);
}

static int dial(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct timeval patience = {.tv_sec = 10};
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		die("connect");
	return fd;
}

static void send_all(int fd, const char *bytes, size_t length)
{
	for (size_t sent = 0; sent < length;) {
		ssize_t n = send(fd, bytes + sent, length - sent, MSG_NOSIGNAL);
		if (n < 0)
			die("send");
		sent += (size_t)n;
	}
}

/* ------------------------------------------------------------------ text and bytes */

static int hex(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* Writes what a character or an escape stands for. The bytes written; *at moves behind it. */
static size_t unescape(const char **at, char *out)
{
	size_t count = 1;
	char c = *(*at)++;
	if (c == '\\' && **at == '*') {
		char *end;
		count = strtoul(*at + 1, &end, 10);
		c = end[1];
		*at = end + 2;
	} else if (c == '\\') {
		c = *(*at)++;
		if (c == 'x') {
			c = (char)(hex((*at)[0]) * 16 + hex((*at)[1]));
			*at += 2;
		} else {
			c = c == 'r' ? '\r' : c == 'n' ? '\n' : c;
		}
	}
	memset(out, c, count);
	return count;
}

static size_t unescape_line(const char *at, char *out)
{
	size_t length = 0;
	while (*at != 0)
		length += unescape(&at, out + length);
	return length;
}

static size_t run_length(const char *bytes, size_t length)
{
	size_t n = 1;
	while (n < length && bytes[n] == bytes[0])
		n++;
	return n;
}

static void print_escaped(const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)bytes[i];
		size_t run = run_length(bytes + i, length - i);
		if (run > LONG_RUN && isalnum(c)) {
			printf("\\*%zu,%c", run, c);
			i += run - 1;
		} else if (c == '\r')
			fputs("\\r", stdout);
		else if (c == '\n')
			fputs("\\n", stdout);
		else if (c == '\\')
			fputs("\\\\", stdout);
		else if (c < 32 || c > 126)
			printf("\\x%02x", c);
		else
			putchar(c);
	}
	putchar('\n');
}

/* A line of words as a request. */
static size_t encode(const char *at, char *out)
{
	static char words[MOST];
	size_t lengths[64], count = 0, used = 0;
	while (*at != 0) {
		size_t start = used;
		bool quoted = *at == '"';
		at += quoted;
		while (*at != 0 && *at != (quoted ? '"' : ' '))
			used += quoted ? unescape(&at, words + used) : (words[used] = *at++, 1);
		at += quoted && *at == '"';
		while (*at == ' ')
			at++;
		lengths[count++] = used - start;
	}
	size_t length = (size_t)sprintf(out, "*%zu\r\n", count);
	for (size_t i = 0, from = 0; i < count; from += lengths[i++]) {
		length += (size_t)sprintf(out + length, "$%zu\r\n", lengths[i]);
		memcpy(out + length, words + from, lengths[i]);
		length += lengths[i];
		memcpy(out + length, "\r\n", 2);
		length += 2;
	}
	return length;
}

/* ------------------------------------------------------------------ replies */

static size_t have;

static void read_byte(int fd)
{
	if (have == MOST || recv(fd, reply + have, 1, 0) != 1)
		die("the server did not reply");
	have++;
}

static void read_reply(int fd)
{
	size_t start = have;
	do
		read_byte(fd);
	while (reply[have - 1] != '\n');
	reply[have] = 0;
	long n = strtol(reply + start + 1, NULL, 10);
	switch (reply[start]) {
	case '$':
	case '=':
		for (long i = 0; n >= 0 && i < n + 2; i++)
			read_byte(fd);
		break;
	case '%':
		n *= 2;
		/* fall through */
	case '*':
	case '~':
	case '>':
		for (long i = 0; i < n; i++)
			read_reply(fd);
	}
}

static void read_to_end(int fd)
{
	ssize_t n;
	while (have < MOST && (n = recv(fd, reply + have, MOST - have, 0)) > 0)
		have += (size_t)n;
}

/* Carries a line out; `reply` then has what the server said. */
static void carry_out(const char *line)
{
	int which = 1;
	have = 0;
	if (line[0] == '!') {
		int fd = dial();
		send_all(fd, request, unescape_line(line + 2, request));
		shutdown(fd, SHUT_WR);
		read_to_end(fd);
		close(fd);
		return;
	}
	if (isdigit((unsigned char)line[0]) && strchr("<>~", line[1]) != NULL)
		which = line[0] - '0';
	if (which < 1 || which > CONNECTIONS)
		die("no such connection");
	if (fds[which] == 0)
		fds[which] = dial();
	if (line[1] != '<')
		send_all(fds[which], request,
			 encode(line[1] == '>' || line[1] == '~' ? line + 3 : line, request));
	read_reply(fds[which]);
	if (line[1] == '~')
		have = 0;
}

int main(int argc, char **argv)
{
	static char line[MOST], wanted[MOST];
	bool records = argc == 4 && strcmp(argv[1], "--record") == 0;
	if (argc != 3 + records) {
		fputs("usage: replay [--record] FILE PORT\n", stderr);
		return 2;
	}
	FILE *table = fopen(argv[1 + records], "r");
	port = atoi(argv[2 + records]);
	if (table == NULL)
		die(argv[1 + records]);
	size_t commands = 0, wrong = 0;
	for (int number = 1; fgets(line, sizeof(line), table) != NULL; number++) {
		line[strcspn(line, "\n")] = 0;
		char *arrow = strstr(line, " => ");
		if (line[0] == '#' || line[0] == 0) {
			if (records)
				puts(line);
			continue;
		}
		if (arrow == NULL) {
			printf("%s:%d: no \" => \"\n", argv[1], number);
			return 2;
		}
		*arrow = 0;
		carry_out(line);
		commands++;
		if (records) {
			printf("%s => ", line);
			print_escaped(reply, have);
			continue;
		}
		size_t length = unescape_line(arrow + 4, wanted);
		if (length == have && memcmp(wanted, reply, have) == 0)
			continue;
		wrong++;
		printf("%s:%d: expected %s\n  got ", argv[1], number, arrow + 4);
		print_escaped(reply, have);
	}
	if (!records)
		printf("replay: %zu commands, %zu replies differ\n", commands, wrong);
	return wrong > 0 || commands == 0;
}
