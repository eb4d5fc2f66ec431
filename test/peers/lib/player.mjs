// A player in a process of its own, which stays and gets one script after the other through a pipe.

import {spawn} from 'node:child_process';
import {createInterface} from 'node:readline';

export class Player {
	constructor(command, args) {
		this.process = spawn(command, args, {stdio: ['pipe', 'pipe', 'inherit']});
		this.process.stdin.on('error', () => {});
		this.lines = [];
		this.waiting = null;
		const reader = createInterface({input: this.process.stdout});
		reader.on('line', (line) => this.take(line));
		reader.on('close', () => this.take('end', 'the player has ended'));
	}

	take(line, error) {
		if (line !== 'end') {
			this.lines.push(line);
			return;
		}
		const waiting = this.waiting;
		this.waiting = null;
		if (error) this.error = error;
		waiting?.(error ? [error] : this.lines);
		this.lines = [];
	}

	/** The trace. One script at a time. */
	play(text) {
		if (this.error) return Promise.resolve([this.error]);
		return new Promise((resolve) => {
			this.waiting = resolve;
			this.process.stdin.write(`${text.trim()}\nend\n`);
		});
	}

	end() {
		this.process.stdin.end();
	}
}
