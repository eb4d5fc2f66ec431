/*
 * answers MISUSES: prints "CALL, tab, ANSWER, tab, SITUATION" for each row, and for each row of
 * test/unit/misuse, which are in the file as "NUMBER, tab, CALL". answers.sh reads them.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"
#include "test/support/faults.h"

static const char *now_in;
/*
 * Without memory: the row that is read, the rows passed so far, and twice the request that is
 * refused: first with all that come after it, then alone.
 */
static long wanted_row, passed_rows, refused_request;
static bool poor;

void situation(const char *name)
{
	now_in = name;
}

void must(const char *call, long long answer)
{
	if (answer >= 0)
		return;
	fprintf(stderr, "answers: %s answers %lld (%s)\n", call, answer, now_in);
	exit(1);
}

static _Thread_local char reason[256]; /* that the misuse hook got on this thread */

static void hear(const char *text)
{
	snprintf(reason, sizeof reason, "%s", text);
}

/* Of a wait that is refused the hook gets a text that names the call. */
static void expect_reason(const char *call, long long answer)
{
	size_t name = strcspn(call, "(");
	bool named = strncmp(reason, call, name) == 0 && reason[name] == ':';
	if (answer == -EDEADLK && !named && strcmp(now_in, "in a forked child") != 0) {
		fprintf(stderr, "answers: %s (%s) has the text \"%s\"\n", call, now_in, reason);
		exit(1);
	}
	reason[0] = 0;
}

/*
 * No call is a cancellation point (mpsc/base/process.h). Each thread that reads rows has a pending
 * pthread_cancel. Between the rows its state is disabled, for what the tables do themselves.
 */
static void cancellable(bool is_on)
{
	int former;
	pthread_setcancelstate(is_on ? PTHREAD_CANCEL_ENABLE : PTHREAD_CANCEL_DISABLE, &former);
}

bool row_begins(void)
{
	reason[0] = 0;
	if (poor && passed_rows++ != wanted_row)
		return false;
	cancellable(true);
	if (!poor)
		return true;
	refused_request = 0;
	faults_arm(0, true);
	return true;
}

static void tell(const char *call, long long answer)
{
	const char *name = answer == -ENOTSUP ? "ENOTSUP" /* which is EOPNOTSUPP */
			   : answer < 0       ? strerrorname_np((int)-answer)
					      : NULL;
	if (name)
		dprintf(STDOUT_FILENO, "%s\t-%s\t%s\n", call, name, now_in);
	else
		dprintf(STDOUT_FILENO, "%s\t%lld\t%s\n", call, answer, now_in);
}

void row_ends(const char *call, long long answer)
{
	cancellable(false);
	if (poor)
		faults_disarm();
	expect_reason(call, answer);
	tell(call, answer);
}

bool row_again(void)
{
	if (!poor || !faults_disarm() || refused_request > 600)
		return false;
	refused_request++;
	cancellable(true);
	faults_arm(refused_request / 2, refused_request % 2 == 0);
	return true;
}

void in_child(void (*calls)(void))
{
	situation("in a forked child");
	pid_t child = fork();
	must("fork", child);
	if (child == 0) {
		alarm(20);
		calls();
		_exit(0);
	}
	int status;
	must("waitpid", waitpid(child, &status, 0));
	if (status != 0) {
		fprintf(stderr, "answers: a child ended with status %#x\n", (unsigned)status);
		exit(1);
	}
}

static void *thread(void *arg)
{
	struct inside *inside = arg;
	cancellable(false);
	pthread_cancel(pthread_self());
	inside->calls();
	return NULL;
}

void in_thread(void (*calls)(void))
{
	struct inside inside = {.calls = calls};
	pthread_t id;
	void *end = NULL;
	must("pthread_create", -pthread_create(&id, NULL, thread, &inside));
	pthread_join(id, &end);
	if (end != PTHREAD_CANCELED)
		return;
	fprintf(stderr, "answers: a call %s is a cancellation point; the next row begins it\n",
		now_in);
	exit(1);
}

/* Each row on a new thread, for which the library has nothing yet. */
void without_memory(void (*calls)(void))
{
	situation("without memory");
	for (wanted_row = 0;; wanted_row++) {
		passed_rows = 0;
		poor = true;
		in_thread(calls);
		poor = false;
		if (passed_rows <= wanted_row)
			break;
	}
}

void nothing(void *arg)
{
}

void testcancel(void *arg, enum tw_fate fate)
{
	pthread_testcancel();
}

void run_calls(void *calls)
{
	struct inside *inside = calls;
	inside->calls();
	inside->over = 1;
}

void await_over(struct inside *inside)
{
	while (!inside->over)
		sched_yield();
}

void hold(void *arg)
{
	struct hold *held = arg;
	held->begun = 1;
	while (!held->over)
		sched_yield();
}

void await_begun(struct hold *held)
{
	while (!held->begun)
		sched_yield();
}

void let_go(struct hold *held)
{
	held->over = 1;
}

static int refuse(tw_executor *self, tw_batch *batch, size_t n)
{
	return -EAGAIN;
}

static const struct tw_executor_ops refusing_ops = {.size = sizeof refusing_ops, .submit = refuse};
tw_executor unsound, refusing = {.ops = &refusing_ops};

#define VALUE(name) dprintf(STDOUT_FILENO, "=%s\t%d\n", #name, name)

static void values(void)
{
	VALUE(TW_CANCELLED);
	VALUE(TW_GONE);
	VALUE(TW_RUNNING);
	VALUE(TW_FINISHED);
	VALUE(TW_SELF);
	VALUE(TW_DISARMED);
	VALUE(TW_RESET_KEPT);
	VALUE(TW_JOB_LATE);
	VALUE(TW_SCHEDULER_RUN_IDLE);
	VALUE(TW_SCHEDULER_RUN_MORE);
}

/* Calls that answer no number have rows with 0. */
static void misuses(const char *name)
{
	FILE *rows = fopen(name, "r");
	char call[4096];
	long long answer;
	must(name, rows ? 0 : -1);
	situation("with bad arguments");
	while (fscanf(rows, "%lld\t%4095[^\n]", &answer, call) == 2)
		if (answer)
			tell(call, answer);
	fclose(rows);
}

static void all_rooms(void)
{
	timers();
	groups();
	services();
	statistics();
	pools();
	manuals();
	clocks();
	strands();
	semaphores();
	limiters();
	jobs();
	schedulers();
	actions();
	simulations();
}

int main(int argc, char **argv)
{
	alarm(120);
	values();
	must("usage: answers MISUSES", argc == 2 ? 0 : -1);
	tw_set_misuse_hook(hear);
	misuses(argv[1]);
	in_thread(all_rooms);
	return 0;
}
