const WIDTH = 24;
/** The least time between two drawings of the bar. */
const EVERY_MS = 100;

/** Shows progress as a line on stderr that is redrawn in place; nothing without a terminal. */
export class ProgressLine {
  readonly #of: number;
  #drawnAt = 0;
  #isDrawn = false;

  /** @param of how many there are, about */
  constructor(of: number) {
    this.#of = of;
  }

  show(done: number, what: string): void {
    const now = Date.now();
    if (!process.stderr.isTTY || now - this.#drawnAt < EVERY_MS) return;
    this.#drawnAt = now;
    this.#isDrawn = true;
    const full = Math.min(WIDTH, Math.round((done / Math.max(1, this.#of, done)) * WIDTH));
    const bar = `${'█'.repeat(full)}${'░'.repeat(WIDTH - full)}`;
    process.stderr.write(`\r\u001b[K${bar} ${done.toLocaleString('en')} ${what}`);
  }

  /** Takes the line away. */
  end(): void {
    if (this.#isDrawn) process.stderr.write('\r\u001b[K');
    this.#isDrawn = false;
  }
}
