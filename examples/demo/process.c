/* Output beyond the buffer is read and dropped: a child must not hang on a full pipe. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "examples/demo/instant.h"
#include "examples/demo/process.h"

static void become(char *const argv[], int output_fd, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	dup2(output_fd, STDOUT_FILENO);
	dup2(output_fd, STDERR_FILENO);
	execvp(argv[0], argv);
	fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

bool process_start(struct process *p, char *const argv[])
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	pid_t parent = getpid();
	fflush(NULL);
	p->pid = fork();
	if (p->pid == 0)
		become(argv, ends[1], parent);
	close(ends[1]);
	p->output_fd = ends[0];
	return p->pid > 0;
}

/* False: there will be no more. */
static bool read_some(struct process *p, int timeout_ms)
{
	char beyond[512];
	struct pollfd ready = {.fd = p->output_fd, .events = POLLIN};
	size_t room = sizeof(p->output) - 1 - p->length;
	if (poll(&ready, 1, timeout_ms) <= 0)
		return true;
	ssize_t n = read(p->output_fd, room > 0 ? p->output + p->length : beyond,
			 room > 0 ? room : sizeof(beyond));
	if (n > 0 && room > 0)
		p->length += (size_t)n;
	p->output[p->length] = 0;
	return n > 0;
}

bool process_wait_for(struct process *p, const char *text, int timeout_ms)
{
	uint64_t end_ns = instant_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	while (strstr(p->output, text) == NULL)
		if (!read_some(p, 50) || instant_ns() > end_ns)
			return strstr(p->output, text) != NULL;
	return true;
}

bool process_has_ended(struct process *p)
{
	if (p->pid > 0 && waitpid(p->pid, &p->status, WNOHANG) == p->pid)
		p->pid = 0;
	return p->pid == 0;
}

int process_stop(struct process *p, int timeout_ms)
{
	uint64_t end_ns = instant_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	if (!process_has_ended(p))
		kill(p->pid, SIGTERM);
	while (read_some(p, 50) && instant_ns() < end_ns)
		;
	while (!process_has_ended(p) && instant_ns() < end_ns)
		sleep_until_ns(instant_ns() + NS_PER_MS);
	if (p->pid > 0) {
		kill(p->pid, SIGKILL);
		waitpid(p->pid, &p->status, 0);
		p->pid = 0;
	}
	close(p->output_fd);
	return WIFEXITED(p->status) ? WEXITSTATUS(p->status) : 128 + WTERMSIG(p->status);
}
