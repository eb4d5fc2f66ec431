// Actions beside RxJS's schedulers.

import {Host} from '../lib/host.mjs';
import {Play, parse} from '../lib/script.mjs';

export const name = 'actions';
export const peer = 'rxjs';

const KINDS = ['queue', 'async', 'asap', 'frame'];
const TASKS = 6;
const SLOT = 8; // ms

// RxJS's queue and frame actions keep their interval if they change from a delay to none; its
// delayed asap actions take a waiting turn along (differences.md). So each task of a queue or of
// frames always has a delay, or never.
function generateDelay(random, kind, id) {
	if (kind === 'asap') return 0;
	if (kind === 'queue' || kind === 'frame') return id % 3 === 0 ? random.between(1, 6) : 0;
	// ours runs a delay of 0 before what is due in the next tick, node behind it (differences.md)
	return random.between(1, 6);
}

// RxJS moves an action that is armed again behind its equals. Ours keeps the place that its timer
// has (differences.md). So where timers wait, armed actions are armed again only by "slot", which
// gives each task instants of its own.
function generateArm(random, kind, id, slots) {
	const delay = generateDelay(random, kind, id);
	return slots && delay > 0 ? `slot ${id} ${delay}` : `arm ${id} ${delay}`;
}

function generateInside(random, kind, id, slots) {
	const op = random.weighted({arm: 8, self: 6, close: 2, closed: 1, fail: 1, now: 1});
	const other = random.below(TASKS);
	if (op === 'arm' || op === 'self')
		return generateArm(random, kind, op === 'self' ? id : other, slots);
	return op === 'close' || op === 'closed' ? `${op} ${other}` : op;
}

// Node puts an interval behind the timers that its own run has set, since it goes on when the run
// has returned. Ours takes its place when it is armed. So the steps of a run end with those that
// arm its own action (differences.md).
function sortOwnArmLast(lines, id) {
	const isOwn = (line) => line.startsWith(`arm ${id} `) || line.startsWith(`slot ${id} `);
	return [...lines.filter((line) => !isOwn(line)), ...lines.filter(isOwn)];
}

export function generate(random) {
	const kind = random.pick(KINDS);
	const slots = ['async', 'queue', 'frame'].includes(kind) && random.percent(50);
	const lines = [`actions ${kind}`];
	for (let id = 0; id < TASKS; id++)
		for (let nth = 1; nth <= 3; nth++) {
			if (random.percent(45)) continue;
			const inside = Array.from({length: random.between(1, 3)}, () =>
				generateInside(random, kind, id, slots),
			);
			for (const line of kind === 'async' || kind === 'frame' || kind === 'queue'
				? sortOwnArmLast(inside, id)
				: inside)
				lines.push(`on ${id} ${nth} ${line}`);
		}
	const drive = {
		asap: ['flush'],
		frame: ['flush', 'advance'],
	}[kind] ?? ['advance'];
	for (let i = random.between(4, 14); i > 0; i--) {
		const op = random.weighted({arm: 10, close: 1, closed: 1, now: 1, drive: 6});
		const id = random.below(TASKS);
		if (op === 'arm') lines.push(generateArm(random, kind, id, slots));
		else if (op === 'drive') {
			const how = random.pick(drive);
			lines.push(how === 'advance' ? `advance ${random.between(1, slots ? 40 : 9)}` : how);
		} else lines.push(op === 'now' ? 'now' : `${op} ${id}`);
	}
	lines.push(
		drive.includes('advance') ? 'advance 120' : 'flush',
		...Array.from({length: TASKS}, (_, id) => `closed ${id}`),
	);
	return lines.join('\n');
}

class RxPlay {
	constructor(script, rx) {
		this.rx = rx;
		this.kind = script.kind;
		this.byCaller = this.kind === 'asap' || this.kind === 'frame';
		this.host = new Host(0, 1);
		this.turn = null; // what the host was asked to call
		this.tasks = new Map();
		this.armings = 0;
		this.running = null;
		this.setHost();
		this.scheduler = this.makeScheduler();
		this.play = new Play(script, (op, args, inside) => this.step(op, args, inside));
	}

	setHost() {
		const ask = (fn) => (this.turn = {fn});
		const clear = (turn) => {
			if (this.turn === turn) this.turn = null;
		};
		this.rx.intervalProvider.delegate = {
			setInterval: this.host.setInterval,
			clearInterval: this.host.clear,
		};
		this.rx.immediateProvider.delegate = {setImmediate: ask, clearImmediate: clear};
		this.rx.animationFrameProvider.delegate = {
			requestAnimationFrame: ask,
			cancelAnimationFrame: clear,
		};
	}

	makeScheduler() {
		const name = {queue: 'Queue', asap: 'Asap', frame: 'AnimationFrame', async: 'Async'}[this.kind];
		return new this.rx[`${name}Scheduler`](this.rx[`${name}Action`], () => this.host.now);
	}

	now() {
		return this.host.now;
	}

	task(id) {
		if (!this.tasks.has(id))
			this.tasks.set(id, {action: null, armed: -1, fails: false});
		return this.tasks.get(id);
	}

	/** The delay to an instant that is this task's own. */
	slot(id, n) {
		return (Math.floor(this.now() / SLOT) + n) * SLOT + id - this.now();
	}

	work(id, state) {
		const task = this.task(id);
		const outer = this.running;
		this.play.say(`run ${id} ${state} at ${this.now()}`);
		task.armed = -1;
		this.running = task;
		this.play.run(id);
		this.running = outer;
		if (task.fails) throw {task: id};
	}

	create(id) {
		return new this.scheduler.schedulerActionCtor(this.scheduler, (state) =>
			this.work(id, state),
		);
	}

	// An arming beside one that waits is left out where RxJS runs both, or in another order,
	// unless the step asks for it by "!".
	arm(id, delay, forced) {
		const task = this.task(id);
		if (!forced && task.armed >= 0) {
			this.play.say('skip');
			return;
		}
		task.action ??= this.create(id);
		const armed = !task.action.closed;
		if (armed) task.armed = delay;
		this.armings++;
		if (this.kind === 'queue' && !armed && !forced)
			// it would throw (differences.md)
			return;
		this.attempt(() => task.action.schedule(this.armings, delay));
	}

	close(id) {
		const task = this.task(id);
		task.action?.unsubscribe();
		task.armed = -1;
	}

	/** Only the outermost call of a flush throws. */
	attempt(fn) {
		try {
			fn();
		} catch (failure) {
			this.play.say(
				failure.task === undefined ? `threw ${failure.name}` : `failed ${failure.task}`,
			);
		}
	}

	advance(ms) {
		const to = this.host.now + ms;
		let more = true;
		while (more)
			this.attempt(() => {
				more = this.host.fire(to);
			});
		this.host.now = to;
	}

	driveTurn() {
		const turn = this.turn;
		this.turn = null;
		if (turn) this.attempt(() => turn.fn());
	}

	step(op, [id, delay], inside) {
		const steps = {
			arm: () => this.arm(id, delay, false),
			'arm!': () => this.arm(id, delay, true),
			slot: () => this.arm(id, this.slot(id, delay), true),
			close: () => this.close(id),
			closed: () => this.play.say(`closed ${Number(this.task(id).action?.closed ?? false)}`),
			now: () => this.play.say(`now ${this.now()}`),
			fail: () => this.running && (this.running.fails = true),
			advance: () => !inside && this.advance(id),
			flush: () => !inside && this.byCaller && this.driveTurn(),
		};
		steps[op]();
		if (!inside && this.byCaller) this.play.say(`wanted ${Number(this.turn !== null)}`);
	}
}

export async function open(load) {
	const internal = (path) => load(`rxjs/internal/scheduler/${path}`);
	const kinds = ['Queue', 'Asap', 'AnimationFrame', 'Async'];
	const parts = ['intervalProvider', 'immediateProvider', 'animationFrameProvider'].concat(
		...kinds.map((kind) => [`${kind}Scheduler`, `${kind}Action`]),
	);
	const rx = {};
	for (const part of parts) rx[part] = (await internal(part))[part];
	return {
		play: (text) => new RxPlay(parse(text), rx).play.all(),
		close() {},
	};
}
