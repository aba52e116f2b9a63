import { MAX_TIMER_MS } from '../job/limits.ts';

/** A pause that others can end. A ring while nobody pauses ends the next pause before it begins, so none is lost. */
export class Alarm {
  #rung = false;
  #end: () => void = () => undefined;

  ring(): void {
    this.#rung = true;
    this.#end();
  }

  /** Forgets a ring: what it told of is about to be looked at. */
  clear(): void {
    this.#rung = false;
  }

  /** Waits for a ring, at most `ms` milliseconds, which may be `Infinity`; answers whether it rang. */
  async pause(ms: number): Promise<boolean> {
    if (!this.#rung) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(() => this.#end(), Math.min(ms, MAX_TIMER_MS));
        this.#end = () => {
          clearTimeout(timer);
          this.#end = () => undefined;
          resolve();
        };
      });
    }
    const rung = this.#rung;
    this.#rung = false;
    return rung;
  }
}
