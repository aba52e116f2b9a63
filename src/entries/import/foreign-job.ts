/** A job as it waits in another system: what the functions of an {@link ImportRule} are given. */
export interface ForeignJob {
  /** Its id there, as a text. */
  readonly id: string;
  /** What the mapping knows it by: its queue in pg-boss, its task in graphile-worker, its name in BullMQ. */
  readonly name: string;
  /** Its payload there, as `JSON.parse` reads it: a number beyond 2^53 has lost digits. */
  readonly data: unknown;
  /** Its payload there as JSON text, with every digit. */
  readonly json: string;
  /** As it is there. Which end is better differs: see {@link from}. */
  readonly priority: number;
  /** When it is due, by the clock there. */
  readonly runAt: Date;
  /** How many attempts it has behind it. */
  readonly attempts: number;
  /** How many it has before it; `undefined`: nothing says so there, and the definition does. */
  readonly attemptsLeft: number | undefined;
  readonly createdAt: Date | undefined;
  /** The key by which it is the only one of its kind there. */
  readonly key: string | undefined;
  /** What it shares with the jobs that never run beside it, such as graphile-worker's named queue. */
  readonly serial: string | undefined;
}

/** The kinds of jobs that are counted apart. */
export type ForeignState = 'waiting' | 'delayed' | 'retrying';

/** A job that was read, with what the importer needs to know beside. */
export interface ReadJob extends ForeignJob {
  readonly state: ForeignState;
  /** How many steps its priority is behind what its system gives to jobs by default; below 0: before it. */
  readonly stepsBehind: number;
  /** Until when another with its key is refused there, or becomes it: its first run, or its end. */
  readonly keyHolds: 'waiting' | 'live';
  /** Why it cannot be carried over, whatever the mapping says. */
  readonly unfit: string | undefined;
}

/** What counts as which. @param isLater whether its time is still to come, by the clock there */
export function foreignState(attempts: number, isLater: boolean): ForeignState {
  if (attempts > 0) return 'retrying';
  return isLater ? 'delayed' : 'waiting';
}
