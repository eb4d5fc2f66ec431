// Limiter and semaphore beside p-limit, p-queue and Bottleneck.

import {Host} from '../lib/host.mjs';
import {Play, parse} from '../lib/script.mjs';

export const name = 'limiter';
export const peer = 'p-limit, p-queue, bottleneck';

// In one instant of a step promises settle in an order of their own, behind their jobs. So starts
// are compared in order, and ends as those of an instant.
export function normalise(lines) {
	const rank = (line) => (line.startsWith('start') ? 0 : line.startsWith('finish') ? 1 : 2);
	const time = (line) => Number(line.split(' at ')[1] ?? 0);
	const inOrder = (a, b) =>
		rank(a) - rank(b) || (rank(a) === 1 ? time(a) - time(b) || (a < b ? -1 : 1) : 0);
	return [...lines].sort(inOrder);
}

const KINDS = ['plimit', 'semaphore', 'pqueue', 'pqueue', 'prate', 'bottleneck', 'bottleneck'];
const JOBS = 16;

function generateSubmit(random, kind, id, equal) {
	// A job that is submitted inside a start takes a free permit at once in p-queue. Ours gives
	// that to the first in line when the executor comes to it (differences.md). So those have
	// one priority.
	const priorities = equal
		? [0]
		: ({pqueue: [0, 0, 1, 2, 5], bottleneck: [0, 0, 1, 2, 4, -4]}[kind] ?? [0]);
	const timeout =
		(kind === 'pqueue' || kind === 'bottleneck') && random.percent(25)
			? random.between(1, 9)
			: 0;
	return `submit ${id} ${random.pick(priorities)} ${timeout}`;
}

function generateKnobs(random, kind) {
	const permits = random.between(1, 4);
	if (kind === 'prate') return [permits + 20, random.between(1, 4), random.between(2, 9)];
	if (kind !== 'bottleneck') return [permits];
	// Bottleneck chooses a job when it plans the job's start, ours at the start (differences.md). So
	// where starts are spaced, all jobs have one priority, and there is no bound on those that wait.
	return random.percent(50)
		? [permits, random.pick([2, 5]), 0]
		: [permits, 0, random.pick([0, 1, 2, 4])];
}

function generateInside(random, kind, id) {
	const op = random.weighted({submit: 4, own: 4, other: 2});
	if (op === 'submit') return generateSubmit(random, kind, random.below(JOBS), true);
	return `complete ${op === 'own' ? id : random.below(JOBS)} ${random.below(2)}`;
}

/**
 * All jobs are submitted at first, since p-queue counts starts in windows, ours in any span of time
 * (differences.md).
 */
function generateRate(random, header) {
	const lines = [header];
	const count = random.between(4, JOBS);
	for (let id = 0; id < count; id++) lines.push(`on ${id} 1 complete ${id} 0`);
	lines.push('pause');
	for (let id = 0; id < count; id++) lines.push(`submit ${id} 0 0`);
	lines.push('resume');
	for (let i = random.between(2, 6); i > 0; i--) lines.push(`advance ${random.between(1, 20)}`);
	return lines.join('\n');
}

export function generate(random) {
	const kind = random.pick(KINDS);
	const knobs = generateKnobs(random, kind);
	const header = `limiter ${kind} ${knobs.join(' ')}`;
	if (kind === 'prate') return generateRate(random, header);
	const lines = [header];
	for (let id = 0; id < JOBS; id++)
		if (random.percent(30)) {
			const inside = Array.from({length: random.between(1, 2)}, () =>
				generateInside(random, kind, id),
			);
			// p-queue starts a job inside its submit, before the steps that follow. So
			// a job ends with its one submit.
			inside.sort((a, b) => (a < b ? -1 : 1));
			if (kind !== 'pqueue' || inside.filter((line) => line.startsWith('submit')).length < 2)
				lines.push(...inside.map((line) => `on ${id} 1 ${line}`));
		}
	const weights = {submit: 14, complete: 12};
	if (kind !== 'bottleneck') {
		weights.limit = 2;
		weights.clear = 1;
	}
	if (kind === 'pqueue') {
		weights.pause = weights.resume = 1;
		weights[random.pick(['idle', 'clear'])] = 1; // p-queue does not notice that a clear has made it idle (differences.md)
		if (weights.idle) delete weights.clear;
	}
	if (kind === 'pqueue' || kind === 'bottleneck') weights.advance = 6;
	let id = 0;
	const equal = kind === 'bottleneck' && knobs[1] > 0;
	const make = {
		submit: () => (id < JOBS ? generateSubmit(random, kind, id++, equal) : null),
		complete: () => `complete ${random.below(JOBS)} ${random.below(2)}`,
		limit: () => `limit ${random.between(1, 5)}`,
		advance: () => `advance ${random.between(1, 8)}`,
	};
	for (let i = random.between(8, 40); i > 0; i--) {
		const op = random.weighted(weights);
		const line = make[op] ? make[op]() : op;
		if (line) lines.push(line);
	}
	return lines.join('\n');
}

const realImmediate = setImmediate;
const real = {setTimeout, clearTimeout, setInterval, clearInterval, now: Date.now};

/** The packages read the global names. */
function replaceGlobals(host) {
	globalThis.setTimeout = host.setTimeout;
	globalThis.setInterval = host.setInterval;
	globalThis.clearTimeout = globalThis.clearInterval = host.clear;
	Date.now = () => host.now;
}

function restoreGlobals() {
	const {now, ...timers} = real;
	Object.assign(globalThis, timers);
	Date.now = now;
}

/**
 * What the packages differ in. Each has add(fn, priority, timeout), limit, clear, pause, resume,
 * onIdle.
 */
const adapters = {
	plimit: ({pLimit}, [permits]) => {
		const limit = pLimit(permits);
		return {
			add: (fn) => limit(fn),
			limit: (n) => (limit.concurrency = n),
			clear: () => limit.clearQueue(),
		};
	},
	pqueue: ({PQueue}, [concurrency]) =>
		queueAdapter(new PQueue({concurrency, throwOnTimeout: true})),
	prate: ({PQueue}, [concurrency, intervalCap, interval]) =>
		queueAdapter(new PQueue({concurrency, intervalCap, interval})),
	bottleneck: ({Bottleneck}, [maxConcurrent, minTime, highWater]) => {
		const limiter = new Bottleneck({
			maxConcurrent,
			minTime,
			...(highWater ? {highWater, strategy: Bottleneck.strategy.OVERFLOW} : {}),
		});
		return {
			add: (fn, priority, timeout) =>
				limiter.schedule(
					{priority: 5 - priority, ...(timeout ? {expiration: timeout} : {})},
					fn,
				),
		};
	},
};
adapters.semaphore = adapters.plimit;

function queueAdapter(queue) {
	return {
		add: (fn, priority, timeout) => queue.add(fn, {priority, ...(timeout ? {timeout} : {})}),
		limit: (n) => (queue.concurrency = n),
		clear: () => queue.clear(),
		pause: () => queue.pause(),
		resume: () => queue.start(),
		onIdle: () => queue.onIdle(),
	};
}

function outcome(error) {
	if (error?.message?.includes('timed out')) return 'timeout';
	return error?.message?.includes('dropped') ? 'refused' : 'failed';
}

class LimiterPlay {
	constructor(script, packages) {
		this.host = new Host(1e6);
		replaceGlobals(this.host);
		this.limiter = adapters[script.kind](packages, script.knobs);
		this.saysAll = script.kind !== 'semaphore';
		this.jobs = new Map();
		this.play = new Play(script, (op, args, inside) => this.step(op, args, inside));
	}

	say(text) {
		this.play.say(`${text} at ${this.host.now - 1e6}`);
	}

	/** Until nothing happens any more at this instant. */
	async settle() {
		do await new Promise((resolve) => realImmediate(resolve));
		while (this.host.fire(this.host.now));
	}

	start(id) {
		const job = this.jobs.get(id);
		const ended = new Promise((resolve, reject) => Object.assign(job, {resolve, reject}));
		job.started = true;
		this.say(`start ${id}`);
		this.play.run(id);
		return ended;
	}

	submit(id, priority, timeout) {
		if (this.jobs.has(id)) return;
		const job = {started: false, ended: false};
		this.jobs.set(id, job);
		const finish = (how) => {
			job.ended = true;
			this.finish(id, how);
		};
		this.limiter
			.add(() => this.start(id), priority, timeout)
			.then(
				() => finish('ok'),
				(error) => finish(outcome(error)),
			);
	}

	finish(id, how) {
		if (how === 'refused') this.play.say(`finish ${id} refused at ${this.host.now - 1e6}`);
		else this.say(`finish ${id} ${this.saysAll ? how : 'ok'}`);
	}

	complete(id, fails) {
		const job = this.jobs.get(id);
		if (!job?.started || job.ended || job.completed) return;
		job.completed = true;
		if (fails) job.reject(new Error('failed'));
		else job.resolve();
	}

	step(op, [first, second, third]) {
		const steps = {
			submit: () => this.submit(first, second, third),
			complete: () => this.complete(first, second),
			limit: () => this.limiter.limit(first),
			clear: () => this.limiter.clear(),
			pause: () => this.limiter.pause(),
			resume: () => this.limiter.resume(),
			idle: () => this.limiter.onIdle().then(() => this.play.say('idle')),
		};
		steps[op.replace('!', '')]?.();
	}

	async after(op, [ms]) {
		await this.settle();
		for (let i = 0; op === 'advance' && i < ms; i++) {
			this.host.now++;
			while (this.host.fire(this.host.now)) await this.settle();
		}
	}

	async all() {
		try {
			return await this.play.all((op, args) => this.after(op, args));
		} finally {
			restoreGlobals();
		}
	}
}

export async function open(load) {
	const packages = {
		pLimit: (await load('p-limit')).default,
		PQueue: (await load('p-queue')).default,
		Bottleneck: await load('bottleneck'),
	};
	return {play: (text) => new LimiterPlay(parse(text), packages).all(), close() {}};
}
