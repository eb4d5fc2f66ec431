/* fork, a pipe, and a time limit. The parent stays single-threaded, so a child may do anything. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/measure.h"
#include "bench/run.h"

static volatile sig_atomic_t interrupted;

/*
 * Blocked during a run but where it waits, so that none comes between the look at `interrupted` and
 * the waiting.
 */
static sigset_t interrupts, usual_mask;

static void remember(int signal_number)
{
	interrupted = signal_number;
}

void run_catch_interrupts(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = remember};
	sigemptyset(&interrupts);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		sigaction(numbers[i], &action, NULL);
		sigaddset(&interrupts, numbers[i]);
	}
	sigprocmask(SIG_SETMASK, NULL, &usual_mask);
}

bool run_interrupted(void)
{
	return interrupted != 0;
}

static _Noreturn void child(const struct workload *workload, const struct order *order,
			    int to_parent, pid_t parent)
{
	static struct outcome outcome;
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	sigprocmask(SIG_SETMASK, &usual_mask, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	outcome_send_to(to_parent);
	if (order->candidate->run)
		order->candidate->run(workload, order, &outcome);
	else
		workload->run(order, &outcome);
	_exit(outcome_send(&outcome) ? 1 : 0);
}

/* The bytes that came: all, if the child has got that far. */
static size_t receive(int from_child, uint64_t end_ns, struct outcome *out)
{
	size_t got = 0;
	while (got < sizeof *out && !interrupted) {
		uint64_t now = now_ns();
		if (now >= end_ns)
			break;
		struct pollfd ready = {.fd = from_child, .events = POLLIN};
		struct timespec left = {.tv_sec = (time_t)((end_ns - now) / SECOND_NS),
					.tv_nsec = (long)((end_ns - now) % SECOND_NS)};
		if (ppoll(&ready, 1, &left, &usual_mask) <= 0)
			continue;
		ssize_t bytes = read(from_child, (char *)out + got, sizeof *out - got);
		if (bytes <= 0)
			break;
		got += (size_t)bytes;
	}
	return got;
}

static void explain(struct outcome *out, int status, bool out_of_time, uint64_t limit_ns)
{
	memset(out, 0, sizeof *out);
	if (out_of_time)
		outcome_violation(out, "hangs: no result after %llu s",
				  (unsigned long long)(limit_ns / SECOND_NS));
	else if (WIFSIGNALED(status))
		outcome_violation(out, "crashed: %s", strsignal(WTERMSIG(status)));
	else
		outcome_violation(out, "ended without a result, exit status %d",
				  WEXITSTATUS(status));
}

bool run_apart(const struct workload *workload, const struct order *order, uint64_t limit_ns,
	       struct outcome *out)
{
	int ends[2], status = 0;
	memset(out, 0, sizeof *out);
	fflush(NULL);
	sigprocmask(SIG_BLOCK, &interrupts, NULL);
	pid_t parent = getpid(), pid = pipe(ends) == 0 ? fork() : -1;
	if (pid < 0) {
		outcome_violation(out, "no process for the run: %s", strerror(errno));
		sigprocmask(SIG_SETMASK, &usual_mask, NULL);
		return true;
	}
	if (pid == 0) {
		close(ends[0]);
		child(workload, order, ends[1], parent);
	}
	close(ends[1]);
	uint64_t end_ns = now_ns() + limit_ns;
	bool complete = receive(ends[0], end_ns, out) == sizeof *out;
	bool out_of_time = !complete && now_ns() >= end_ns;
	close(ends[0]);
	if (!complete && (out_of_time || interrupted))
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	sigprocmask(SIG_SETMASK, &usual_mask, NULL);
	if (interrupted)
		return false;
	if (!complete)
		explain(out, status, out_of_time, limit_ns);
	else if (status != 0 && !out->trouble[0])
		outcome_violation(out, "went wrong after its result was in");
	return true;
}
