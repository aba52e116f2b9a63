import type { Handled } from './counter.ts';
import type { MeasurementName, ProgramName } from './programs.ts';

/** What to work off, and what to note about it. */
export interface WorkRequest {
  readonly program: ProgramName;
  readonly url: string;
  readonly options: unknown;
  /** Note the time of every so-manieth job. */
  readonly sampleEvery: number;
  /** Note when each job began, by its number. */
  readonly noteStarts: boolean;
}

/** In bytes. */
export interface Memory {
  /** What JavaScript's objects take. */
  readonly heapBytes: number;
  /** What the process takes of the machine. */
  readonly rssBytes: number;
  /** The most that it has ever taken. */
  readonly maxRssBytes: number;
}

/** What a measured process does when it is told to. */
export interface Commands {
  /** Loads a program's code. */
  load(program: ProgramName): Promise<void>;
  /** Begins to work off jobs. */
  work(request: WorkRequest): Promise<void>;
  /** Waits until so many jobs are done, or for so long; answers whether they are. */
  untilHandled(count: number, timeoutMs: number): Promise<boolean>;
  /** How many were done so far. */
  count(): Promise<number>;
  /** What was done so far. */
  handled(): Promise<Handled>;
  /** Collects garbage, and answers what memory the process takes after that. */
  memory(): Promise<Memory>;
  /** Carries out a measurement that takes place in the process, and answers what it has shown. */
  measure(name: MeasurementName, request: unknown): Promise<unknown>;
  /** Ends what was begun. */
  stop(): Promise<void>;
}

export interface Request {
  readonly id: number;
  readonly method: keyof Commands;
  readonly args: readonly unknown[];
}

export interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: string;
}
