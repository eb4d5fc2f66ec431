/*
 * asio's steady_timer, twice from one source.
 *
 * asio: one io_context on one thread, its best case: ASIO_CONCURRENCY_HINT_UNSAFE removes its
 * locks; a turn is poll(); deadlines are counted from the time that the turn has read, through
 * expires_at.
 *
 * asio-mt: an io_context that runs in a thread of its own. Different timers of one io_context may
 * be used by several threads at a time, as its documentation says; a timer by one. Each call reads
 * the clock.
 *
 * The use chosen for both: a steady_timer in each connection, made once; schedule is expires_at and
 * async_wait, cancel is cancel(), a move is expires_at, which cancels the wait, and a new
 * async_wait. asio then calls the handler of the cancelled wait with operation_aborted; that call
 * is part of its cost. Handlers hold three words, so that asio recycles their memory through its
 * thread-local cache where the thread that frees them is the one that allocates.
 */
#include <cstdlib>
#include <chrono>
#include <new>
#include <thread>

#include <asio.hpp>

extern "C" {
#include "bench/measure.h"
#include "bench/candidate.h"
}

namespace
{

using clock_type = std::chrono::steady_clock;

struct timer {
	explicit timer(asio::io_context &io) : wait(io)
	{
	}
	asio::steady_timer wait;
	expiry_fn *fn = nullptr; /* the slot's thread; handlers have copies */
	void *arg = nullptr;
	uint32_t armed = 0; /* schedules less cancels: the slot's thread */
	uint32_t fired = 0; /* handlers that ran it: the io_context's thread */
};

struct loop {
	loop(int hint, bool threaded) : io(hint), work(io.get_executor()), is_threaded(threaded)
	{
	}
	asio::io_context io;
	asio::executor_work_guard<asio::io_context::executor_type> work;
	bool is_threaded;
	uint64_t loop_ns = 0;
	uint32_t slots = 0;
	timer *timers = nullptr;
	std::thread thread;
};

inline loop *loop_of(void *self)
{
	return static_cast<loop *>(self);
}

inline clock_type::time_point point(uint64_t at_ns)
{
	return clock_type::time_point(std::chrono::nanoseconds(at_ns));
}

inline uint64_t deadline_ns(const loop *self, uint64_t delay_ns)
{
	return (self->is_threaded ? now_ns() : self->loop_ns) + delay_ns;
}

void wait(timer *t)
{
	t->wait.async_wait([t, fn = t->fn, arg = t->arg](const asio::error_code &aborted) {
		if (aborted)
			return;
		t->fired++;
		fn(arg);
	});
}

void *create(const candidate_setup *setup, bool threaded)
{
	loop *self = new (std::nothrow)
	    loop(threaded ? ASIO_CONCURRENCY_HINT_SAFE : ASIO_CONCURRENCY_HINT_UNSAFE, threaded);
	if (!self)
		return nullptr;
	self->slots = setup->slots;
	self->loop_ns = now_ns();
	self->timers = static_cast<timer *>(touched_array(setup->slots, sizeof(timer)));
	for (uint32_t slot = 0; slot < setup->slots; slot++)
		new (&self->timers[slot]) timer(self->io);
	if (threaded)
		self->thread = std::thread([self] { self->io.run(); });
	return self;
}

void destroy(void *me)
{
	loop *self = loop_of(me);
	self->io.stop();
	if (self->is_threaded)
		self->thread.join();
	for (uint32_t slot = 0; slot < self->slots; slot++)
		self->timers[slot].~timer();
	free(self->timers);
	delete self;
}

int schedule(void *me, unsigned, uint32_t slot, uint64_t delay_ns, expiry_fn *fn, void *arg)
{
	loop *self = loop_of(me);
	timer *t = &self->timers[slot];
	t->fn = fn;
	t->arg = arg;
	t->armed++;
	t->wait.expires_at(point(deadline_ns(self, delay_ns)));
	wait(t);
	return 0;
}

bool cancel(void *me, uint32_t slot)
{
	timer *t = &loop_of(me)->timers[slot];
	if (t->wait.cancel() == 0)
		return false;
	t->armed--;
	return true;
}

bool touch(void *me, unsigned, uint32_t slot, uint64_t delay_ns)
{
	loop *self = loop_of(me);
	timer *t = &self->timers[slot];
	if (t->wait.expires_at(point(deadline_ns(self, delay_ns))) == 0)
		return false;
	wait(t);
	return true;
}

void turn(void *me, unsigned, uint64_t at_ns)
{
	loop *self = loop_of(me);
	self->io.poll();
	self->loop_ns = at_ns;
}

uint64_t drive(void *me, uint64_t end_ns)
{
	loop *self = loop_of(me);
	self->io.run_until(point(end_ns));
	turn(me, 0, now_ns());
	return 0;
}

/* Read while the timers' threads are at rest, and again until the counts agree. */
void view(void *me, candidate_view *out)
{
	loop *self = loop_of(me);
	*out = {};
	out->user_bytes = sizeof(timer);
	for (uint32_t slot = 0; slot < self->slots; slot++)
		out->pending += self->timers[slot].armed - self->timers[slot].fired;
}

void *create_bare(const candidate_setup *setup)
{
	return create(setup, false);
}

void *create_threaded(const candidate_setup *setup)
{
	return create(setup, true);
}

candidate make(const char *name, const char *what, void *(*create)(const candidate_setup *))
{
	candidate made = {};
	made.name = name;
	made.what = what;
	made.peer = true;
	made.rival = true;
	made.workloads = ON_CHURN | ON_REQUEST | ON_TOUCH | ON_FIRE | ON_APART;
	made.create = create;
	made.destroy = destroy;
	made.schedule = schedule;
	made.cancel = cancel;
	made.touch = touch;
	made.view = view;
	return made;
}

candidate make_bare()
{
	candidate made = make(
	    "asio", "asio's steady_timer, one io_context on one thread, time cached", create_bare);
	made.bare = true;
	made.spared = ON_TOUCH | ON_FIRE;
	made.turn = turn;
	made.drive = drive;
	return made;
}

} // namespace

extern "C" {
extern const candidate candidate_asio, candidate_asio_mt;
const candidate candidate_asio = make_bare();
const candidate candidate_asio_mt =
    make("asio-mt", "asio's steady_timer, its io_context in a thread", create_threaded);
}
