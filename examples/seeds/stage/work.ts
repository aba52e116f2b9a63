import { setTimeout } from 'node:timers/promises';

/** Work somewhere else, such as a request to another server: it takes time and needs no database. */
export async function work(ms: number): Promise<void> {
  await setTimeout(ms);
}

/** The same, where somebody counts how many are at work at the same time. */
export class Workplace {
  #now = 0;
  /** The most there ever were. */
  most = 0;

  constructor(readonly ms: number) {}

  work = async (): Promise<void> => {
    this.#now++;
    this.most = Math.max(this.most, this.#now);
    await work(this.ms);
    this.#now--;
  };
}
