/*
 * foreign ANSWER: a process whose socket has the name of a published service, but which answers
 * something else:
 *   other    a page of another format
 *   cut      a page without its end
 *   nothing  nothing at all
 * It says "ready", and ends when its standard input has a byte, or ends.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char *answer_of(const char *what)
{
	if (strcmp(what, "other") == 0)
		return "# tickwheel-top 99\n# something else\n# EOF\n";
	if (strcmp(what, "cut") == 0)
		return "# tickwheel-top 1\n# service x\ntickwheel_timers_pending 1\n";
	return "";
}

static int listen_as(pid_t pid)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int length =
	    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "tickwheel/%d/0", (int)pid);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	return fd < 0 || bind(fd, (const struct sockaddr *)&address, size) || listen(fd, 4) ? -1
											    : fd;
}

int main(int argc, char **argv)
{
	const char *answer = answer_of(argc > 1 ? argv[1] : "");
	struct pollfd ends[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
				 {.fd = listen_as(getpid()), .events = POLLIN}};
	if (ends[1].fd < 0)
		return 1;
	puts("ready");
	fflush(stdout);
	while (poll(ends, 2, -1) > 0 && !ends[0].revents) {
		int fd = accept(ends[1].fd, NULL, NULL);
		if (write(fd, answer, strlen(answer)) < 0)
			return 1;
		close(fd);
	}
	return 0;
}
