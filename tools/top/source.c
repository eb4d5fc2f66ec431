#include "tools/top/source.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* ------------------------------------------------------------------- listing */

static int compare(const void *a, const void *b)
{
	const struct source *x = a, *y = b;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/*
 * The kernel shows the zero byte that begins an abstract name as '@'. Connections have the name of
 * their socket, too.
 */
static bool read_line(const char *line, struct source *source)
{
	const char *name = strstr(line, " @tickwheel/");
	char end;
	return name &&
	       sscanf(name, " @tickwheel/%d/%u%c", &source->pid, &source->number, &end) == 3 &&
	       end == '\n';
}

static bool is_known(const struct source *known, size_t n, const struct source *source)
{
	for (size_t i = 0; i < n; i++)
		if (compare(&known[i], source) == 0)
			return true;
	return false;
}

size_t source_list(int pid, struct source *out, size_t room)
{
	char line[512];
	size_t n = 0;
	FILE *sockets = fopen("/proc/net/unix", "re");
	while (sockets && n < room && fgets(line, sizeof line, sockets)) {
		struct source source;
		if (read_line(line, &source) && (!pid || source.pid == pid) &&
		    !is_known(out, n, &source))
			out[n++] = source;
	}
	if (sockets)
		fclose(sockets);
	qsort(out, n, sizeof *out, compare);
	return n;
}

void source_command(int pid, char *out, size_t room)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/comm", pid);
	FILE *file = fopen(path, "re");
	snprintf(out, room, "?");
	if (!file)
		return;
	if (fgets(out, (int)room, file))
		out[strcspn(out, "\n")] = 0;
	fclose(file);
}

/* ------------------------------------------------------------------- reading */

void source_explain(int pid, char why[SOURCE_TEXT])
{
	char command[64];
	if (kill(pid, 0) && errno == ESRCH) {
		snprintf(why, SOURCE_TEXT, "there is no process %d", pid);
		return;
	}
	if (kill(pid, 0) && errno == EPERM) {
		snprintf(why, SOURCE_TEXT, "process %d belongs to another user", pid);
		return;
	}
	source_command(pid, command, sizeof command);
	snprintf(why, SOURCE_TEXT,
		 "process %d (%s) publishes no service: it has to call tw_service_publish", pid,
		 command);
}

static bool is_answered_by(int fd, int pid)
{
	struct ucred peer;
	socklen_t size = sizeof peer;
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == pid;
}

/* -1: nobody listens. */
static int connect_to(const struct source *source)
{
	const struct timeval limit = {.tv_sec = 1};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "tickwheel/%d/%u",
			      source->pid, source->number);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit); /* of connect */
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	if (connect(fd, (const struct sockaddr *)&address, size) == 0 &&
	    is_answered_by(fd, source->pid))
		return fd;
	close(fd);
	return -1;
}

/* All that comes, with a zero byte after it. NULL: errno tells; EAGAIN means not in time. */
static char *read_all(int fd)
{
	char *text = NULL;
	size_t length = 0, room = 0;
	for (;;) {
		if (room - length < 4096) {
			char *larger = realloc(text, room = room ? 2 * room : 65536);
			if (!larger)
				break;
			text = larger;
		}
		ssize_t n = recv(fd, text + length, room - length - 1, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		length += (size_t)n;
		text[length] = 0;
		if (n == 0)
			return text;
	}
	free(text);
	return NULL;
}

static void explain_page(const struct source *source, enum page_fault fault, int format,
			 char why[SOURCE_TEXT])
{
	int pid = source->pid;
	if (fault == PAGE_OTHER_FORMAT)
		snprintf(why, SOURCE_TEXT,
			 "process %d has format %d, this viewer reads format %d: take the "
			 "tickwheel-top of its version",
			 pid, format, PAGE_FORMAT);
	else if (fault == PAGE_NO_MEMORY)
		snprintf(why, SOURCE_TEXT, "no memory");
	else if (kill(pid, 0) && errno == ESRCH)
		snprintf(why, SOURCE_TEXT, "process %d has gone", pid);
	else if (kill(pid, 0) && errno == EPERM)
		snprintf(why, SOURCE_TEXT, "process %d belongs to another user", pid);
	else
		snprintf(why, SOURCE_TEXT, "process %d did not answer in full", pid);
}

static uint64_t monotonic_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool source_read(const struct source *source, struct page *page, char why[SOURCE_TEXT])
{
	int fd = connect_to(source), format = 0;
	char *text = fd < 0 ? NULL : read_all(fd);
	bool is_late = fd >= 0 && !text && (errno == EAGAIN || errno == EWOULDBLOCK);
	enum page_fault fault = PAGE_FOREIGN;
	if (fd >= 0)
		close(fd);
	if (text)
		fault = page_parse(page, text, &format);
	if (!fault)
		page->read_ns = monotonic_ns();
	else if (is_late)
		snprintf(why, SOURCE_TEXT, "process %d did not answer within a second",
			 source->pid);
	else if (fd < 0 && (kill(source->pid, 0) == 0 || errno != ESRCH))
		snprintf(why, SOURCE_TEXT, "process %d has closed its service", source->pid);
	else
		explain_page(source, fault, format, why);
	return !fault;
}
