/* Sends and reads on a blocking socket with a time limit. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "examples/demo/instant.h"
#include "examples/demo/page.h"

static const char question[] = "GET /stats HTTP/1.1\r\nHost: demo\r\n\r\n";

/* connect chooses the port, which must be free only for this one peer. */
static bool bind_source(int fd, uint32_t source)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(source)};
	int one = 1;
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	return bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
}

int page_connect(uint16_t port, uint32_t source)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if ((source == 0 || bind_source(fd, source)) &&
	    connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -1;
}

/* Where the body begins, if all of it is there. */
static char *whole_body(char *text)
{
	char *body = strstr(text, "\r\n\r\n"), *length = strstr(text, "Content-Length: ");
	if (body == NULL || length == NULL || length > body)
		return NULL;
	body += 4;
	return strlen(body) >= strtoul(length + 16, NULL, 10) ? body : NULL;
}

bool page_read(int fd, struct page *p)
{
	struct timeval limit = {.tv_sec = 3};
	char *body = NULL;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (send(fd, question, sizeof(question) - 1, MSG_NOSIGNAL) < 0)
		return false;
	for (size_t length = 0; body == NULL && length < sizeof(p->text) - 1;
	     body = whole_body(p->text)) {
		ssize_t n = recv(fd, p->text + length, sizeof(p->text) - 1 - length, 0);
		if (n <= 0)
			return false;
		length += (size_t)n;
		p->text[length] = 0;
	}
	p->read_ns = instant_ns();
	if (body != NULL) {
		/* With a line feed in front, every name is at the start of a line. */
		body[-1] = '\n';
		memmove(p->text, body - 1, strlen(body - 1) + 1);
	}
	return body != NULL;
}

uint64_t page_value(const struct page *p, const char *name)
{
	char start[64];
	int n = snprintf(start, sizeof(start), "\n%s ", name);
	const char *line = strstr(p->text, start);
	if (line == NULL) {
		fprintf(stderr, "demo: the server's page has no '%s'\n", name);
		exit(2);
	}
	return strtoull(line + n, NULL, 10);
}
