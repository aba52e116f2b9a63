/** What a process has done. Times are those of `process.hrtime`, which all processes of a machine share, in milliseconds. */
export interface Handled {
  readonly count: number;
  /** How many were done a second time. */
  readonly repeated: number;
  /** One byte per job by its number, 1 when it was done here. */
  readonly seen: Uint8Array;
  readonly sampleEvery: number;
  /** When every so-manieth job was done. */
  readonly samples: Float64Array;
  /** When each job began, by its number; empty unless that was noted. */
  readonly starts: Float64Array;
  /** Processor time of the process, in milliseconds. */
  readonly cpuMs: number;
}

export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Counts jobs where they are done, at next to no cost. */
export class Counter {
  #count = 0;
  #repeated = 0;
  #seen = new Uint8Array(1 << 17);
  #samples = new Float64Array(1 << 12);
  #starts = new Float64Array(0);
  #wanted = Number.POSITIVE_INFINITY;
  #reached: () => void = () => undefined;

  constructor(
    private readonly sampleEvery: number,
    private readonly noteStarts: boolean,
  ) {}

  /** To be called once by a job's handler: where it begins, or where it ends when that is later. */
  count(n: number): void {
    const index = this.#count++;
    if (index % this.sampleEvery === 0) {
      const sample = index / this.sampleEvery;
      if (sample >= this.#samples.length) this.#samples = grown(this.#samples, sample);
      this.#samples[sample] = nowMs();
    }
    if (n >= this.#seen.length) {
      const seen = new Uint8Array(n * 2);
      seen.set(this.#seen);
      this.#seen = seen;
    }
    if (this.#seen[n] === 1) this.#repeated++;
    this.#seen[n] = 1;
    if (this.noteStarts) {
      if (n >= this.#starts.length) this.#starts = grown(this.#starts, n);
      this.#starts[n] = nowMs();
    }
    if (this.#count >= this.#wanted) this.#reached();
  }

  async untilCount(count: number, timeoutMs: number): Promise<boolean> {
    if (this.#count >= count) return true;
    this.#wanted = count;
    return await new Promise<boolean>((resolve) => {
      const timeout = setTimeout(() => resolve(false), timeoutMs);
      this.#reached = () => {
        this.#wanted = Number.POSITIVE_INFINITY;
        clearTimeout(timeout);
        resolve(true);
      };
    });
  }

  get handled(): Handled {
    const { user, system } = process.cpuUsage();
    return {
      count: this.#count,
      repeated: this.#repeated,
      seen: this.#seen,
      sampleEvery: this.sampleEvery,
      samples: this.#samples.slice(0, Math.ceil(this.#count / this.sampleEvery)),
      starts: this.#starts,
      cpuMs: (user + system) / 1_000,
    };
  }
}

function grown(values: Float64Array, index: number): Float64Array<ArrayBuffer> {
  const larger = new Float64Array((index + 1) * 2);
  larger.set(values);
  return larger;
}
