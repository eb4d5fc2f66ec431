/*
 * A strand's delayed tasks and series: a heap by instant and sequence, and one timer of the service
 * for the earliest. The protocol is in internal.h.
 */

#include "executor/strand/time.h"
#include "wheel/timer/schedule.h"
#include "wheel/timer/timing.h"

/*
 * The timer's callback. The driver runs it, so a delayed task waits for no worker of the service's
 * executor. It takes no lock. After its one access it reads the strand only if it has to submit the
 * work.
 */
static void on_timer(void *arg)
{
	tw_strand *strand = arg;
	/* STRAND3 */
	if (!(tw_or_seq_cst(&strand->word, TW__STRAND_ACTIVE | TW__STRAND_DUE) & TW__STRAND_ACTIVE))
		tw__work_submit(&strand->work);
}

/*
 * A reset that finds the timer claimed is as good: DUE comes, or is there, and the runner then sets
 * the timer again.
 */
static int strand_move_timer(tw_strand *strand, uint64_t due_ns)
{
	int r = tw_reset_at(tw__strand_service(strand), strand->delays->timer, due_ns);
	if (r == 0)
		strand->delays->timer_ns = due_ns;
	return r == -EBUSY || r == -ENOENT ? 0 : r;
}

static struct tw__task_node *delayed(struct tw__heap_item *item)
{
	return TW__OWNER(struct tw__task_node, item, item);
}

/* Keys count from the service's start: an instant itself may be above INT64_MAX. */
static int64_t delay_key(tw_strand *strand, uint64_t at_ns)
{
	return (int64_t)(at_ns - tw__strand_service(strand)->time.start_ns);
}

int tw__strand_arm(tw_strand *strand)
{
	TW_ASSERT_TINY_LOCKED(&strand->lock);
	struct tw__strand_delays *delays = strand->delays;
	struct tw__heap_item *first = delays ? tw__heap_peek(&delays->heap) : NULL;
	/* the runner sets it when it has moved what is due */
	if (!first || strand->flags & TW__STRAND_OVERDUE)
		return 0;
	if (tw__strand_closed(strand)) /* its close ends them all */
		return 0;
	uint64_t due_ns = delayed(first)->due_ns;
	if (delays->timer.id)
		return delays->timer_ns <= due_ns ? 0 : strand_move_timer(strand, due_ns);
	int r =
	    tw__base_schedule(tw__strand_service(strand), due_ns, on_timer, strand, &delays->timer);
	delays->timer_ns = due_ns;
	return r;
}

void tw__strand_disarm(tw_strand *strand)
{
	TW_ASSERT_TINY_LOCKED(&strand->lock);
	struct tw__strand_delays *delays = strand->delays;
	if (delays && delays->timer.id &&
	    tw_cancel(tw__strand_service(strand), delays->timer) == TW_CANCELLED)
		delays->timer = (tw_timer){0}; /* else DUE comes */
}

/* Room for the task, and for each series that is not in the heap. */
static int strand_reserve(tw_strand *strand, const struct tw__task_node *task)
{
	if (!strand->delays && !(strand->delays = calloc(1, sizeof *strand->delays)))
		return -ENOMEM;
	struct tw__strand_delays *delays = strand->delays;
	if (tw__heap_reserve(&delays->heap, delays->heap.count + delays->series + 1))
		return -ENOMEM;
	delays->series += task->series != NULL;
	return 0;
}

static void strand_push(tw_strand *strand, struct tw__task_node *task)
{
	struct tw__strand_delays *delays = strand->delays;
	task->state = TW__TASK_DELAYED;
	tw__heap_item_init(&task->item, ++delays->sequence);
	tw__heap_push_reserved(&delays->heap, &task->item, delay_key(strand, task->due_ns));
	if (delays->heap.count > delays->high)
		delays->high = delays->heap.count;
}

void tw__strand_shrink_heap(struct tw__strand_delays *delays)
{
	enum { STEP = 4096 };
	uint32_t count = delays->heap.count;
	if (tw_likely(delays->high - count < 2 * STEP))
		return;
	tw__heap_give_back(&delays->heap, count + STEP, delays->high);
	delays->high = count + STEP;
}

int tw__strand_delay(tw_strand *strand, struct tw__task_node *task)
{
	TW_ASSERT_TINY_LOCKED(&strand->lock);
	int r = strand_reserve(strand, task);
	if (r)
		return r;
	if (task->state == TW__TASK_QUEUED) { /* a series that begins immediately */
		tw__strand_queue_task(strand, task);
		return 0;
	}
	strand_push(strand, task);
	r = tw__strand_arm(strand);
	if (r) {
		tw__heap_remove(&strand->delays->heap, &task->item);
		tw__strand_forget_series(strand, task);
	}
	return r;
}

/* --------------------------------------------------------------------- series */

void tw__strand_series_begins(tw_service *service, struct tw__task_node *task)
{
	struct tw__strand_series *series = task->series;
	if (series->fixed_delay || series->missed == TW_MISSED_BURST)
		return;
	uint64_t now_ns = tw__clock_read(service);
	uint64_t missed = now_ns > task->due_ns ? (now_ns - task->due_ns) / series->period_ns : 0;
	task->due_ns += missed * series->period_ns;
	series->overruns += missed;
}

static void choose_next(struct tw__task_node *task, uint64_t now_ns)
{
	struct tw__strand_series *series = task->series;
	if (series->fixed_delay) {
		task->due_ns = now_ns + series->period_ns;
		return;
	}
	task->due_ns += series->period_ns;
	if (task->due_ns > now_ns)
		return;
	uint64_t missed =
	    tw__instants_missed(series->missed, series->period_ns, now_ns - task->due_ns);
	task->due_ns += missed * series->period_ns;
	series->overruns += missed;
}

/* The runner cannot report that its timer was not set: it tries again in a tick. */
static void arm_or_come_again(tw_strand *strand)
{
	if (tw_unlikely(tw__strand_arm(strand)))
		strand->flags |= TW__STRAND_REARM;
}

bool tw__strand_continue(tw_strand *strand, struct tw__task_node *task)
{
	TW_ASSERT_TINY_LOCKED(&strand->lock);
	struct tw__strand_series *series = task->series;
	tw_service *service = tw__strand_service(strand);
	uint64_t now_ns = tw__clock_read(service);
	if (series->runs_left && --series->runs_left == 0)
		return false;
	choose_next(task, now_ns);
	if (tw__beyond_range(service, task->due_ns))
		return false;
	if (task->due_ns <= now_ns) {
		tw__strand_queue_task(strand, task);
		return true;
	}
	strand_push(strand, task);
	arm_or_come_again(strand);
	return true;
}

void tw__strand_move_due(tw_strand *strand)
{
	TW_ASSERT_TINY_LOCKED(&strand->lock);
	enum { PIECE = 64 };
	struct tw__strand_delays *delays = strand->delays;
	int64_t now_key = delay_key(strand, tw__clock_read(tw__strand_service(strand)));
	strand->flags &= (uint8_t)~TW__STRAND_OVERDUE;
	if (tw_unlikely(tw__strand_closed(strand))) /* the thread that closes ends what is left */
		return;
	for (unsigned n = 0; delays->heap.count && tw__heap_first_key(&delays->heap) <= now_key;
	     n++) {
		if (n == PIECE) {
			strand->flags |= TW__STRAND_OVERDUE;
			return;
		}
		tw__strand_queue_task(strand, delayed(tw__heap_pop(&delays->heap)));
	}
	tw__strand_shrink_heap(delays);
	arm_or_come_again(strand);
}
