/* Statistics, the event log, and its export. */
#include <inttypes.h>

#include "executor/scheduler/log.h"
#include "wheel/base/text.h"

/* ------------------------------------------------------------------- statistics */

int tw_scheduler_stats(tw_scheduler *scheduler, struct tw_scheduler_stats *out)
{
	int r = TW__OUT_CHECK(tw_scheduler_stats, out, completed);
	if (!r)
		r = TW__CHECK(scheduler, "scheduler");
	if (r)
		return r;
	pthread_mutex_lock(&scheduler->lock);
	struct tw_scheduler_stats stats = scheduler->stats;
	uint64_t held = scheduler->tasks.count + (uint64_t)scheduler->timers.count;
	struct tw__task *current = scheduler->current;
	/* Close has taken it out of the heap. */
	held += current && !tw__heap_has(&current->item) && current->running;
	stats.host_requested = scheduler->host.state == TW__HOST_REQUESTED;
	stats.host_timer = scheduler->host.timer_set;
	stats.paused = scheduler->paused;
	stats.delayed = scheduler->timers.count - scheduler->timers_cleared;
	pthread_mutex_unlock(&scheduler->lock);
	stats.ready = held - stats.cleared - stats.delayed;
	tw__struct_write(out, &stats, sizeof stats);
	return 0;
}

/* -------------------------------------------------------------------------- log */

void tw__scheduler_log_slowly(tw_scheduler *scheduler, const struct tw__task *task,
			      enum tw_scheduler_event_kind kind, int64_t now_ns, int result)
{
	TW_ASSERT_LOCKED(&scheduler->lock);
	scheduler->log.events[scheduler->log.event_count++ % scheduler->config.log_events] =
	    (struct tw_scheduler_event){
		.at_ns = (uint64_t)now_ns,
		.task = task->item.id,
		.name = task->name,
		.kind = (uint16_t)kind,
		.priority = task->priority,
		.result = result,
	    };
}

int tw_scheduler_events(tw_scheduler *scheduler, struct tw_scheduler_event *out, size_t n)
{
	int r = !out && n ? tw__invalid("out is NULL") : TW__CHECK(scheduler, "scheduler");
	if (r)
		return r;
	pthread_mutex_lock(&scheduler->lock);
	const struct tw__scheduler_events *log = &scheduler->log;
	uint64_t room = scheduler->config.log_events;
	uint64_t held = log->event_count < room ? log->event_count : room;
	uint64_t count = held < n ? held : n;
	for (uint64_t i = 0; i < count; i++)
		out[i] = log->events[(log->event_count - count + i) % room];
	pthread_mutex_unlock(&scheduler->lock);
	return (int)count; /* at most 2^24 */
}

/* ------------------------------------------------------------------------ trace */

static const char *const priority_names[TW_PRIORITIES] = {"none",   "immediate", "user-blocking",
							  "normal", "low",       "idle"};

static void put_name(FILE *out, const struct tw_scheduler_event *event)
{
	char number[32];
	snprintf(number, sizeof number, "task %" PRIu64, event->task);
	fputc('"', out);
	tw__text_put(out, event->name ? event->name : number, TW__TEXT_JSON);
	fputc('"', out);
}

/* Microseconds with three places: the format's unit. */
static void put_us(FILE *out, const char *key, uint64_t ns)
{
	fprintf(out, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

static void put_head(FILE *out, const struct tw_scheduler_event *event, char phase, uint64_t at_ns)
{
	fputs(",\n{\"name\":", out);
	put_name(out, event);
	fprintf(out, ",\"cat\":\"%s\",\"ph\":\"%c\",\"pid\":1,\"tid\":%u",
		priority_names[event->priority], phase, event->priority);
	put_us(out, "ts", at_ns);
}

static void put_turn(FILE *out, const struct tw_scheduler_event *begin,
		     const struct tw_scheduler_event *end)
{
	static const char *const ends[] = {
	    [TW_EVENT_SUSPEND] = "again", [TW_EVENT_DONE] = "done", [TW_EVENT_ERROR] = "error"};
	put_head(out, begin, 'X', begin->at_ns);
	put_us(out, "dur", end->at_ns > begin->at_ns ? end->at_ns - begin->at_ns : 0);
	fprintf(out, ",\"args\":{\"task\":%" PRIu64 ",\"end\":\"%s\"", begin->task,
		ends[end->kind]);
	if (end->kind == TW_EVENT_ERROR)
		fprintf(out, ",\"result\":%d", end->result);
	fputs("}}", out);
}

/*
 * Leaves out a turn whose begin is no longer in the log, and one that has not ended. There is one
 * at a time.
 */
static void put_events(FILE *out, const struct tw_scheduler_event *events, uint64_t n)
{
	const struct tw_scheduler_event *begin = NULL;
	for (uint64_t i = 0; i < n; i++) {
		const struct tw_scheduler_event *event = &events[i];
		if (event->kind == TW_EVENT_START || event->kind == TW_EVENT_RESUME) {
			begin = event;
		} else if (event->kind == TW_EVENT_CANCEL) {
			put_head(out, event, 'i', event->at_ns);
			fprintf(out,
				",\"s\":\"t\",\"args\":{\"task\":%" PRIu64
				",\"end\":\"cancelled\"}}",
				event->task);
		} else if (begin && begin->task == event->task) {
			put_turn(out, begin, event);
			begin = NULL;
		}
	}
}

static void put_rows(FILE *out)
{
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", out);
	fputs(
	    "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{\"name\":\"scheduler\"}}",
	    out);
	for (int priority = TW_PRIORITY_IMMEDIATE; priority < TW_PRIORITIES; priority++)
		fprintf(out,
			",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{"
			"\"name\":\"%s\"}}",
			priority, priority_names[priority]);
}

int tw_scheduler_trace(tw_scheduler *scheduler, FILE *out)
{
	int r = out ? TW__CHECK(scheduler, "scheduler") : tw__invalid("out is NULL");
	if (r)
		return r;
	size_t room = scheduler->config.log_events;
	struct tw_scheduler_event *events = malloc((room ? room : 1) * sizeof *events);
	if (!events)
		return -ENOMEM;
	int64_t n = tw_scheduler_events(scheduler, events, room);
	put_rows(out);
	put_events(out, events, n > 0 ? (uint64_t)n : 0);
	fputs("\n]}\n", out);
	free(events);
	return ferror(out) ? -EIO : 0;
}
