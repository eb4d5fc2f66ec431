/*
 * libcurl's multi interface in a loop of your own. A multi handle asks for one timer
 * (CURLMOPT_TIMERFUNCTION): it is one timer of the service, moved or cancelled as libcurl says.
 * Here two multi handles share a loop of epoll. A server in this process answers, except for
 * "/slow".
 */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tickwheel.h"

enum { MULTIS = 2, TRANSFERS = 10 };

struct fetcher {
	CURLM *multi;
	tw_timer timer; /* the one that libcurl has asked for */
	int running, fetched, timed_out;
};

static tw_service *service;
static int loop_fd;
static struct fetcher fetchers[MULTIS];

static void end_transfers(struct fetcher *f)
{
	CURLMsg *message;
	int left;
	while ((message = curl_multi_info_read(f->multi, &left))) {
		if (message->msg != CURLMSG_DONE)
			continue;
		f->fetched += message->data.result == CURLE_OK;
		f->timed_out += message->data.result == CURLE_OPERATION_TIMEDOUT;
		CURL *easy = message->easy_handle; /* the message goes with it */
		curl_multi_remove_handle(f->multi, easy);
		curl_easy_cleanup(easy);
	}
}

static void act(struct fetcher *f, curl_socket_t socket, int events)
{
	curl_multi_socket_action(f->multi, socket, events, &f->running);
	end_transfers(f);
}

static void on_timer(void *arg)
{
	act(arg, CURL_SOCKET_TIMEOUT, 0);
}

/* Called inside libcurl, so it only arms: a timeout of 0 is due in the next advance. */
static int timer_wanted(CURLM *multi, long timeout_ms, void *arg)
{
	struct fetcher *f = arg;
	(void)multi;
	if (timeout_ms < 0) {
		tw_cancel(service, f->timer);
		return 0;
	}
	uint64_t delay_ns = (uint64_t)timeout_ms * TW_MILLISECOND;
	int r = tw_reset(service, f->timer, delay_ns); /* from on_timer itself: armed again */
	if (r == -ENOENT || r == -ECANCELED)
		r = tw_schedule(service, delay_ns, on_timer, f, &f->timer);
	return r == 0 ? 0 : -1;
}

/* The low half of an event's data is the descriptor, the high half the fetcher. */
static int socket_wanted(CURL *easy, curl_socket_t socket, int what, void *arg, void *known)
{
	struct fetcher *f = arg;
	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		epoll_ctl(loop_fd, EPOLL_CTL_DEL, socket, NULL);
		return 0;
	}
	struct epoll_event event = {.data.u64 = (uint64_t)(f - fetchers) << 32 | (uint32_t)socket};
	event.events = (what & CURL_POLL_IN ? (uint32_t)EPOLLIN : 0) |
		       (what & CURL_POLL_OUT ? (uint32_t)EPOLLOUT : 0);
	epoll_ctl(loop_fd, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event);
	curl_multi_assign(f->multi, socket, f); /* known from now on */
	return 0;
}

static size_t discard(char *data, size_t size, size_t n, void *arg)
{
	(void)data, (void)arg;
	return size * n;
}

static void fetch(struct fetcher *f, int port, int number)
{
	char url[64];
	snprintf(url, sizeof url, "http://127.0.0.1:%d/%s", port,
		 number % 5 == 0 ? "slow" : "fast");
	CURL *easy = curl_easy_init();
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 200L);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, discard);
	curl_multi_add_handle(f->multi, easy); /* asks for a timer of 0 */
	f->running++;
}

static void open_fetcher(struct fetcher *f)
{
	f->multi = curl_multi_init();
	curl_multi_setopt(f->multi, CURLMOPT_TIMERFUNCTION, timer_wanted);
	curl_multi_setopt(f->multi, CURLMOPT_TIMERDATA, f);
	curl_multi_setopt(f->multi, CURLMOPT_SOCKETFUNCTION, socket_wanted);
	curl_multi_setopt(f->multi, CURLMOPT_SOCKETDATA, f);
}

static void run(void)
{
	struct epoll_event events[16];
	while (fetchers[0].running + fetchers[1].running > 0) {
		int n = epoll_wait(loop_fd, events, 16, -1);
		for (int i = 0; i < n; i++) { /* sockets first */
			if (events[i].data.u64 == UINT64_MAX)
				continue;
			int in = events[i].events & ~(uint32_t)EPOLLOUT ? CURL_CSELECT_IN : 0;
			int out = events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0;
			act(&fetchers[events[i].data.u64 >> 32], (int)(uint32_t)events[i].data.u64,
			    in | out);
		}
		tw_service_advance(service, TW_NO_LIMIT); /* once, last */
	}
}

/* Answers each request, and keeps the slow ones open until the end. */
static void *serve(void *arg)
{
	int listener = *(int *)arg, kept[MULTIS * TRANSFERS], n = 0;
	static const char answer[] =
	    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
	for (int i = 0; i < MULTIS * TRANSFERS; i++) {
		char request[1024] = "";
		int s = accept(listener, NULL, NULL);
		if (s < 0)
			break;
		ssize_t got = read(s, request, sizeof request - 1);
		if (got > 0 && strstr(request, "/slow")) {
			kept[n++] = s;
			continue;
		}
		if (got > 0 && write(s, answer, sizeof answer - 1) < 0)
			perror("write");
		close(s);
	}
	char gone;
	while (n > 0) {
		if (read(kept[n - 1], &gone, 1) < 0)
			perror("read");
		close(kept[--n]);
	}
	return NULL;
}

int main(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof at;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pthread_t server;
	if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 64) != 0 ||
	    getsockname(listener, (struct sockaddr *)&at, &length) != 0 ||
	    pthread_create(&server, NULL, serve, &listener) != 0)
		return 1;
	struct tw_service_config config = TW_INIT(tw_service_config);
	config.drive = TW_DRIVE_MANUAL;
	config.executor = tw_executor_inline();
	if (tw_service_create(&service, &config) != 0)
		return 1;
	loop_fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event timers = {.events = EPOLLIN, .data.u64 = UINT64_MAX};
	epoll_ctl(loop_fd, EPOLL_CTL_ADD, tw_service_fd(service), &timers);
	curl_global_init(CURL_GLOBAL_DEFAULT);
	for (int i = 0; i < MULTIS; i++) {
		open_fetcher(&fetchers[i]);
		for (int t = 0; t < TRANSFERS; t++)
			fetch(&fetchers[i], ntohs(at.sin_port), t);
	}
	run();
	int fetched = 0, timed_out = 0;
	for (int i = 0; i < MULTIS; i++) {
		fetched += fetchers[i].fetched;
		timed_out += fetchers[i].timed_out;
		curl_multi_cleanup(fetchers[i].multi);
	}
	printf("%d fetched, %d timed out\n", fetched, timed_out);
	pthread_join(server, NULL);
	curl_global_cleanup();
	tw_service_destroy(service);
	close(loop_fd);
	close(listener);
	return fetched == 16 && timed_out == 4 ? 0 : 1;
}
