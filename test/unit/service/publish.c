/*
 * Publishing a service: who is answered, with what, and how it ends. test/top.sh looks with the
 * viewer.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "test/support/child.h"
#include "test/support/rig.h"

TestSuite(service_publish, .timeout = 30);

/*
 * The number of the sockets that this process publishes on; *first: the number in the name of the
 * first one.
 */
static unsigned published(unsigned *first)
{
	char line[512], name[64];
	unsigned count = 0, number;
	FILE *sockets = fopen("/proc/net/unix", "r");
	cr_assert(sockets != NULL);
	snprintf(name, sizeof name, "@tickwheel/%d/", (int)getpid());
	while (fgets(line, sizeof line, sockets)) {
		char *at = strstr(line, name);
		if (!at || sscanf(at + strlen(name), "%u", &number) != 1)
			continue;
		*first = count++ && *first < number ? *first : number;
	}
	fclose(sockets);
	return count;
}

static int connect_to(unsigned number)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "tickwheel/%d/%u",
			      (int)getpid(), number);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	expect_eq(connect(fd, (const struct sockaddr *)&address, size), 0);
	return fd;
}

static void read_page(unsigned number, char *out, size_t room)
{
	int fd = connect_to(number);
	size_t length = 0;
	for (ssize_t n; (n = recv(fd, out + length, room - length - 1, 0)) > 0;)
		length += (size_t)n;
	out[length] = 0;
	close(fd);
}

static char page[1 << 20];

Test(service_publish, a_viewer_gets_a_whole_page)
{
	struct rig rig;
	unsigned number;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	for (int i = 0; i < 7; i++)
		probe_schedule(&probe, SECOND);
	expect_eq(published(&number), 0);
	expect_eq(tw_service_publish(rig.service, "a \"name\"\n"), 0);
	expect_eq(published(&number), 1);
	for (int i = 0; i < 3; i++) {
		read_page(number, page, sizeof page);
		static const char head[] = "# tickwheel-top 1\n# service a \\\"name\\\"\\n\n";
		cr_assert(strncmp(page, head, strlen(head)) == 0, "%.80s", page);
		cr_assert(strstr(page, "\ntickwheel_timers_pending 7\n") != NULL);
		cr_assert(strcmp(page + strlen(page) - 7, "\n# EOF\n") == 0);
	}
	rig_close(&rig);
	expect_eq(published(&number), 0);
}

/* n named members, one due after each of 1 .. n seconds. */
static tw_group make_group(struct rig *rig, struct probe *probe, int n)
{
	tw_group group;
	expect_eq(tw_group_create(&group, rig->service), 0);
	struct tw_task task = {.size = sizeof task,
			       .fn = probe_run,
			       .arg = probe,
			       .name = "a \"member\"\xff",
			       .group = group};
	for (int i = 0; i < n; i++) {
		task.when_ns = (uint64_t)(n - i) * SECOND;
		expect_eq(tw_schedule_task(rig->service, &task, NULL), 0);
	}
	return group;
}

static unsigned count_in(const char *all, const char *text)
{
	unsigned n = 0;
	for (const char *at = all; (at = strstr(at, text)); at += strlen(text))
		n++;
	return n;
}

Test(service_publish, a_viewer_sees_the_largest_groups)
{
	enum { GROUPS = 20, SHOWN = 16 };
	struct rig rig;
	unsigned number;
	tw_group groups[GROUPS];
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	for (int i = 0; i < GROUPS; i++)
		groups[i] = make_group(&rig, &probe, i + 1);
	rig_advance(&rig, 500 * MS);
	expect_eq(tw_service_publish(rig.service, NULL), 0);
	expect_eq(published(&number), 1);
	read_page(number, page, sizeof page);
	static const char line[] = "\ntickwheel_largest_group_members{group=\"";
	expect_eq(count_in(page, line), SHOWN);
	const char *first = strstr(page, line);
	cr_assert(strncmp(first + strlen(line),
			  "20\",state=\"open\",name=\"a \\\"member\\\"\\\\xff\"", 40) == 0,
		  "%.120s", first);
	cr_assert(strstr(page, "\ntickwheel_largest_group_due_seconds{group=\"20\"} 0.5") != NULL,
		  "%.2000s", first);
	/* Those that a cancel has ended do not count, settled or not. */
	expect_eq(tw_group_cancel(rig.service, groups[GROUPS - 1]), 0);
	read_page(number, page, sizeof page);
	expect_eq(count_in(page, "largest_group_members{group=\"20\""), 0);
	expect_eq(count_in(page, line), SHOWN);
	rig_close(&rig);
}

Test(service_publish, each_service_has_a_socket_of_its_own)
{
	struct rig one, two;
	unsigned number;
	rig_open(&one, NULL);
	rig_open(&two, NULL);
	expect_eq(tw_service_publish(one.service, NULL), 0);
	expect_eq(tw_service_publish(two.service, NULL), 0);
	expect_eq(published(&number), 2);
	rig_close(&one);
	expect_eq(published(&number), 1);
	rig_close(&two);
	expect_eq(published(&number), 0);
}

Test(service_publish, without_a_name_the_services_own_is_shown)
{
	struct rig rig;
	unsigned number;
	struct tw_service_config config = rig_config();
	config.name = "db";
	rig_open(&rig, &config);
	expect_eq(tw_service_publish(rig.service, NULL), 0);
	expect_eq(published(&number), 1);
	read_page(number, page, sizeof page);
	cr_assert(strstr(page, "\n# service db\n") != NULL, "%.80s", page);
	cr_assert(strstr(page, "\ntickwheel_timers_pending 0\n") != NULL); /* without the label */
	rig_close(&rig);
}

Test(service_publish, what_cannot_be_published_is_told)
{
	struct rig rig;
	unsigned number;
	rig_open(&rig, NULL);
	expect_eq(tw_service_publish(NULL, "x"), -EINVAL);
	expect_eq(tw_service_publish(rig.service, "x"), 0);
	expect_eq(tw_service_publish(rig.service, "x"), -EALREADY);
	expect_eq(published(&number), 1);
	rig_close(&rig);
	rig_open(&rig, NULL);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), 0);
	expect_eq(tw_service_publish(rig.service, "x"), -ESHUTDOWN);
	rig_close(&rig);
}

/*
 * A close leaves it published, so that it can be watched; a destroy does not wait for a viewer that
 * does not read.
 */
Test(service_publish, a_destroy_does_not_wait_for_viewers)
{
	struct rig rig;
	unsigned number;
	int fds[6];
	rig_open(&rig, NULL);
	expect_eq(tw_service_publish(rig.service, "x"), 0);
	expect_eq(published(&number), 1);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), 0);
	for (int i = 0; i < 6; i++)
		fds[i] = connect_to(number);
	rig_close(&rig);
	for (int i = 0; i < 6; i++)
		close(fds[i]);
}

Test(service_publish, a_forked_child_can_destroy_its_copy)
{
	struct rig rig;
	unsigned number;
	rig_open(&rig, NULL);
	expect_eq(tw_service_publish(rig.service, "x"), 0);
	expect_eq(published(&number), 1);
	pid_t child = child_fork();
	if (child == 0) {
		bool refused = tw_service_publish(rig.service, "y") == -EPERM;
		_exit(refused && tw_service_destroy(rig.service) == 0 ? 0 : 1);
	}
	expect_child_well(child);
	read_page(number, page, sizeof page); /* the parent answers as before */
	cr_assert(strstr(page, "# EOF") != NULL);
	rig_close(&rig);
}
