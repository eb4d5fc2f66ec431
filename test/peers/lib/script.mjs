// Scripts on the side of JavaScript: the same format as in ours/script.h.

const MOST_RUNS = 400;

export function parse(text) {
	const [header, ...lines] = text.trim().split('\n');
	const [row, kind, ...knobs] = header.split(' ');
	const steps = lines.map((line) => {
		const words = line.split(' ');
		const [on, nth] = words[0] === 'on' ? words.splice(0, 3).slice(1).map(Number) : [-1, 0];
		return {on, nth, op: words[0], args: words.slice(1).map(Number)};
	});
	return {row, kind, knobs: knobs.map(Number), steps};
}

/** One script while it is played: the trace, and the steps that belong to the runs of its tasks. */
export class Play {
	constructor(script, step) {
		this.script = script;
		this.step = step; // step(op, args, inside)
		this.trace = [];
		this.runs = new Map();
		this.runsInAll = 0;
	}

	say(line) {
		this.trace.push(line);
	}

	/** after: called when a step of the script itself has been carried out. */
	async all(after = () => {}) {
		for (const [index, {on, op, args}] of this.script.steps.entries()) {
			if (on >= 0) continue;
			this.say(`> ${index}`);
			this.step(op, args, false);
			await after(op, args);
		}
		return this.trace;
	}

	/** Carries out the steps that belong to this run of a task. */
	run(id) {
		const nth = (this.runs.get(id) ?? 0) + 1;
		this.runs.set(id, nth);
		if (++this.runsInAll > MOST_RUNS) throw new Error('too many runs');
		for (const step of this.script.steps)
			if (step.on === id && step.nth === nth) this.step(step.op, step.args, true);
	}
}
