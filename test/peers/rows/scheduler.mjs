// The scheduler beside React's: its mock (kind "mock"), and the real one on a host of
// ours (kind "slice").

import {Host} from '../lib/host.mjs';
import {Play, parse} from '../lib/script.mjs';

export const name = 'scheduler';
export const peer = 'scheduler';

const KINDS = ['mock', 'mock', 'mock', 'slice'];
const TASKS = 14;

// Each task is posted once. It goes on by "again", so a later run of it has steps of its own.
function generatePost(random, id, delays) {
	const priority = random.pick([1, 2, 3, 3, 3, 4, 5]);
	const delay = delays && random.percent(35) ? random.pick([1, 2, 3, 5, 8, 250, 4750, 5000]) : 0;
	return `post ${id} ${priority} ${delay}`;
}

// The mock stops for good if its timer comes due inside a task (differences.md). So there a script
// has delays, or tasks that take time, but not both.
//
// Ours ends a turn of the host before a task that has come in it, theirs goes on if it is expired;
// and ours gives way to a more urgent task (differences.md). So in a script whose tasks ask, no task
// comes while another runs.
function generateInside(random, kind, delays, asks) {
	const weights = {
		post: 6,
		cancel: 3,
		advance: 4,
		again: 4,
		yield: 4,
		fail: 1,
	};
	weights[asks ? 'post' : 'yield'] = 0;
	if (kind === 'slice') weights.fail = 0; // their slice ends where a task fails (differences.md)
	if (kind === 'mock' && delays) weights.advance = 0;
	const op = random.weighted(weights);
	if (op === 'post') return generatePost(random, random.below(TASKS), delays);
	if (op === 'cancel') return `cancel ${random.below(TASKS)}`;
	return op === 'advance' ? `advance ${random.pick([1, 1, 2, 3, 5, 251, 5001])}` : op;
}

export function generate(random) {
	const kind = random.pick(KINDS);
	const asks = random.percent(kind === 'slice' ? 50 : 20);
	const delays = !asks && random.percent(kind === 'slice' ? 100 : 70);
	const lines = [`scheduler ${kind}`];
	for (let id = 0; id < TASKS; id++)
		for (let nth = 1; nth <= 3; nth++)
			for (let i = random.pick([0, 1, 1, 2, 3]); i > 0; i--)
				lines.push(`on ${id} ${nth} ${generateInside(random, kind, delays, asks)}`);
	for (let i = random.between(5, 16); i > 0; i--) {
		const op = random.weighted({post: 10, cancel: 2, advance: 4, run: 4});
		const make = {
			post: () => generatePost(random, random.below(TASKS), delays),
			cancel: () => `cancel ${random.below(TASKS)}`,
			advance: () => `advance ${random.pick([1, 2, 3, 5, 249, 250, 5000, 10000])}`,
			run: () => 'run',
		};
		lines.push(make[op]());
	}
	lines.push('run', 'advance 6000', 'run');
	return lines.join('\n');
}

class ReactPlay {
	constructor(script, sources) {
		this.kind = script.kind;
		this.isSlice = this.kind === 'slice';
		this.host = new Host(0);
		this.immediate = null;
		this.react = this.load(sources);
		this.jobs = new Map();
		this.running = null;
		this.play = new Play(script, (op, args, inside) => this.step(op, args, inside));
	}

	/** Each script gets a module of its own, since the module is the scheduler. */
	load(sources) {
		const exported = {};
		const setImmediate = (fn) => (this.immediate = fn);
		const performance = {now: () => this.host.now};
		const make = this.isSlice ? sources.real : sources.mock;
		make(exported, performance, this.host.setTimeout, this.host.clear, setImmediate);
		return exported;
	}

	now() {
		return this.react.unstable_now();
	}

	turn(id, late) {
		const job = this.jobs.get(id);
		this.play.say(
			`run ${id} prio ${this.react.unstable_getCurrentPriorityLevel()} late ${Number(late)} at ${this.now()}`,
		);
		this.running = job;
		job.goesOn = job.fails = false;
		job.late = late;
		this.play.run(id);
		this.running = null;
		if (job.fails) throw {task: id};
		return job.goesOn ? (stillLate) => this.turn(id, stillLate) : undefined;
	}

	post(id, priority, delay) {
		if (this.jobs.has(id)) return;
		const job = {goesOn: false, fails: false};
		this.jobs.set(id, job);
		job.handle = this.react.unstable_scheduleCallback(priority, (late) => this.turn(id, late), {
			delay,
		});
	}

	cancel(id, forced) {
		const job = this.jobs.get(id);
		if (job && (job !== this.running || forced)) this.react.unstable_cancelCallback(job.handle);
	}

	advance(ms) {
		if (this.isSlice) this.host.now += ms;
		else this.react.unstable_advanceTime(ms);
	}

	runMock(raw) {
		// The mock forgets its timer if that finds a cancelled task (differences.md): an
		// empty task makes it look again.
		if (!raw && !this.react.unstable_hasPendingWork())
			this.react.unstable_scheduleCallback(1, () => {});
		while (!this.attempt(this.react.unstable_flushAllWithoutAsserting)) {
			// A task has failed, and the rest still waits.
		}
	}

	/** False: a task has failed. */
	attempt(fn) {
		try {
			fn();
			return true;
		} catch (failure) {
			if (failure.task === undefined) throw failure;
			this.play.say(`failed ${failure.task}`);
			return false;
		}
	}

	runSlices() {
		while (this.host.fire(this.host.now) || this.immediate) {
			const fn = this.immediate;
			this.immediate = null;
			this.attempt(() => fn?.());
		}
	}

	run(raw) {
		if (this.isSlice) this.runSlices();
		else this.runMock(raw);
	}

	step(op, [first, second, third], inside) {
		const steps = {
			post: () => this.post(first, second, third),
			cancel: () => this.cancel(first, false),
			'cancel!': () => this.cancel(first, true),
			advance: () => this.advance(first),
			run: () => !inside && this.run(false),
			'run!': () => !inside && this.run(true),
			again: () => inside && (this.running.goesOn = true),
			fail: () => inside && (this.running.fails = true),
			// an expired task of ours has a slice of its own (differences.md)
			yield: () => !(this.isSlice && this.running.late) && steps['yield!'](),
			'yield!': () =>
				inside && this.play.say(`yield ${Number(this.react.unstable_shouldYield())}`),
		};
		if (inside || op !== 'yield') steps[op]();
	}
}

export async function open(load, {packages}) {
	const {readFileSync} = await import('node:fs');
	const compile = (file) =>
		new Function(
			'exports',
			'performance',
			'setTimeout',
			'clearTimeout',
			'setImmediate',
			readFileSync(`${packages}/node_modules/scheduler/cjs/${file}.production.js`, 'utf8'),
		);
	const sources = {mock: compile('scheduler-unstable_mock'), real: compile('scheduler')};
	return {play: (text) => new ReactPlay(parse(text), sources).play.all(), close() {}};
}
