import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';

/** What a worker process writes down the moment it happens. */
export type RunEvent =
  /** The worker is registered. */
  | 'started'
  /** A handler has begun. */
  | 'begun'
  /** A handler has come to its end, whatever became of its job. */
  | 'ended'
  /** The worker was told that its end of the job is written. */
  | 'settled'
  /** The worker was told that the job is put back; the detail says after what. */
  | 'rescheduled'
  /** The worker was told that it no longer held the job. */
  | 'lost'
  /** The worker has declared another gone. */
  | 'gone'
  | 'listening'
  | 'polling'
  | 'error';

export interface RunEntry {
  /** By {@link monotonicMs}. */
  readonly atMs: number;
  readonly event: RunEvent;
  readonly job?: number;
  readonly fence?: number;
  readonly n?: number;
  /** What there is to say beside: the worker's id, an error's message. */
  readonly detail?: string;
  /** Of 'started' and 'begun': what time it is by the process's own clock. */
  readonly clockMs?: number;
}

/** A line of some process's log. */
export interface ProcessEntry extends RunEntry {
  readonly process: string;
}

/** The machine's monotonic clock, in milliseconds: the same one in all its processes, and no `Date` of theirs moves it. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/**
 * Opens a log for appending; answers the function that writes a line. Each line is in the system's hands when the function
 * returns, so it outlives a SIGKILL of this process.
 */
export function openRunLog(path: string): (entry: Omit<RunEntry, 'atMs'>) => void {
  const file = openSync(path, 'a');
  return (entry) => {
    writeSync(file, `${JSON.stringify({ atMs: monotonicMs(), ...entry })}\n`);
  };
}

/** Reads what another process writes with {@link openRunLog}: each line once, as it comes. */
export class RunLogReader {
  readonly #file: number;
  readonly #process: string;
  readonly #entries: ProcessEntry[] = [];
  readonly #decoder = new StringDecoder('utf8');
  #position = 0;
  #rest = '';

  constructor(path: string, process: string) {
    // Created here, so that it can be read before the process has opened it.
    this.#file = openSync(path, 'a+');
    this.#process = process;
  }

  /** All entries so far. */
  entries(): readonly ProcessEntry[] {
    const buffer = Buffer.alloc(64 * 1024);
    for (;;) {
      const length = readSync(this.#file, buffer, 0, buffer.length, this.#position);
      if (length === 0) return this.#entries;
      this.#position += length;
      const lines = (this.#rest + this.#decoder.write(buffer.subarray(0, length))).split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) {
        const entry: RunEntry = JSON.parse(line);
        this.#entries.push({ ...entry, process: this.#process });
      }
    }
  }

  close(): void {
    closeSync(this.#file);
  }
}
