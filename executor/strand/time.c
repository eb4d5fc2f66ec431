/* A strand's delayed tasks and series: a heap by instant and sequence, and one timer of the service for the earliest. See strand.h. */
#include <errno.h>
#include <stdlib.h>

#include "executor/strand/internal.h"
#include "wheel/service/core.h"

static struct tw__task_node *task_of(struct tw__heap_item *item)
{
	return (struct tw__task_node *)(void *)((char *)item - offsetof(struct tw__task_node, item));
}

/*
 * The timer's callback, on the service's executor: it takes no lock, and after its one access it looks at the strand only if it has become
 * the one to submit the work.
 */
static void on_timer(void *arg)
{
	tw_strand *strand = arg;
	if (!(tw_or_seq_cst(&strand->word, TW__STRAND_ACTIVE | TW__STRAND_DUE) & TW__STRAND_ACTIVE)) /* S3 */
		tw__work_submit(&strand->work);
}

/*
 * Where a refused hand-over would end the timer, the driver itself runs it: it must come. Elsewhere a side record, and sorting out by
 * executors, are not worth it. Tasks have contexts of their own: the timer carries none.
 */
static int schedule(tw_strand *strand, uint64_t due_ns, tw_timer *out)
{
	tw_service *service = tw__strand_service(strand);
	bool drops = service->on_refused == TW_REFUSED_DROP;
	if (tw_likely(!drops && !tw__context_is_on()))
		return tw_schedule_at(service, due_ns, on_timer, strand, out);
	struct tw_task task = {.size = sizeof task,
			       .fn = on_timer,
			       .arg = strand,
			       .when_ns = due_ns,
			       .flags = TW_TASK_AT | TW_TASK_CONTEXT,
			       .executor = drops ? tw_executor_inline() : NULL};
	return tw_schedule_task(service, &task, out);
}

/* A reset that finds the timer claimed is as good: DUE comes, or is there, and the runner then sets the timer anew. */
static int move_timer(tw_strand *strand, uint64_t due_ns)
{
	int r = tw_reset_at(tw__strand_service(strand), strand->delays->timer, due_ns);
	if (r == 0)
		strand->delays->timer_ns = due_ns;
	return r == -EBUSY || r == -ENOENT ? 0 : r;
}

int tw__strand_arm(tw_strand *strand)
{
	struct tw__strand_delays *delays = strand->delays;
	struct tw__heap_item *first = delays ? tw__heap_peek(&delays->heap) : NULL;
	if (!first || tw__strand_disposed(strand)) /* its dispose ends them all */
		return 0;
	uint64_t due_ns = (uint64_t)tw__heap_key(&delays->heap, first);
	if (delays->timer.id)
		return delays->timer_ns <= due_ns ? 0 : move_timer(strand, due_ns);
	int r = schedule(strand, due_ns, &delays->timer);
	delays->timer_ns = due_ns;
	return r;
}

void tw__strand_disarm(tw_strand *strand)
{
	struct tw__strand_delays *delays = strand->delays;
	if (delays && delays->timer.id && tw_cancel(tw__strand_service(strand), delays->timer) == TW_CANCELLED)
		delays->timer = (tw_timer){0}; /* else DUE comes */
}

/* Room for the task, and for each series that is not in the heap just now. */
static int reserve(tw_strand *strand, const struct tw__task_node *task)
{
	if (!strand->delays && !(strand->delays = calloc(1, sizeof *strand->delays)))
		return -ENOMEM;
	struct tw__strand_delays *delays = strand->delays;
	if (tw__heap_reserve(&delays->heap, delays->heap.count + delays->series + 1))
		return -ENOMEM;
	delays->series += task->period_ns != 0;
	return 0;
}

static void push(tw_strand *strand, struct tw__task_node *task)
{
	task->state = TW__TASK_DELAYED;
	tw__heap_item_init(&task->item, ++strand->delays->sequence);
	tw__heap_push_reserved(&strand->delays->heap, &task->item, (int64_t)task->due_ns);
}

int tw__strand_delay(tw_strand *strand, struct tw__task_node *task)
{
	int r = reserve(strand, task);
	if (r)
		return r;
	if (task->state == TW__TASK_QUEUED) { /* a series that begins at once */
		tw__strand_queue_task(strand, task);
		return 0;
	}
	push(strand, task);
	r = tw__strand_arm(strand);
	if (r) {
		tw__heap_remove(&strand->delays->heap, &task->item);
		tw__strand_forget_series(strand, task);
	}
	return r;
}

uint64_t tw__strand_next(uint64_t nominal_ns, uint64_t period_ns, uint64_t last_ns, uint64_t now_ns,
			 uint64_t tolerance_ns)
{
	bool back = now_ns < last_ns && last_ns - now_ns > tolerance_ns;
	bool forward = now_ns >= last_ns && now_ns - last_ns > period_ns + tolerance_ns;
	return back || forward ? now_ns + period_ns : nominal_ns + period_ns;
}

/* The runner has nobody to tell that its timer could not be set: it comes again in a tick. */
static void arm_or_come_again(tw_strand *strand)
{
	if (tw_unlikely(tw__strand_arm(strand)))
		strand->flags |= TW__STRAND_REARM;
}

void tw__strand_continue(tw_strand *strand, struct tw__task_node *task)
{
	uint64_t now_ns = tw__clock_read(tw__strand_service(strand));
	task->due_ns = tw__strand_next(task->due_ns, task->period_ns, task->last_ns, now_ns, task->tolerance_ns);
	task->last_ns = now_ns;
	if (task->due_ns <= now_ns) {
		tw__strand_queue_task(strand, task);
		return;
	}
	push(strand, task);
	arm_or_come_again(strand);
}

void tw__strand_due(tw_strand *strand)
{
	struct tw__strand_delays *delays = strand->delays;
	uint64_t now_ns = tw__clock_read(tw__strand_service(strand));
	struct tw__heap_item *first;
	delays->timer = (tw_timer){0};
	if (tw_unlikely(
		tw__strand_disposed(strand))) /* what is left is for whoever disposes, and is about to come to it */
		return;
	while ((first = tw__heap_peek(&delays->heap)) && (uint64_t)tw__heap_key(&delays->heap, first) <= now_ns) {
		tw__heap_remove(&delays->heap, first);
		tw__strand_queue_task(strand, task_of(first));
	}
	arm_or_come_again(strand);
}
