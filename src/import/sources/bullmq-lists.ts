import { QueueError } from '../../errors.ts';
import { foreignState, type ReadJob } from '../foreign-job.ts';
import { bullmqKey, bullmqUnfit } from './bullmq-jobs.ts';
import { DROP, END_LEASE, HOLD, LIST, LOOK, PUT_BACK, TAKE_LEASE } from './bullmq-scripts.ts';

/** Runs a script on the server, as `EVAL` does. */
export type RunScript = (
  name: string,
  lua: string,
  keys: readonly string[],
  args: readonly string[],
) => Promise<unknown>;

/** The ids of what stands in BullMQ's lists at one moment. */
export interface Listed {
  /** By the state in which they are, the first to run first. */
  readonly waiting: ReadonlyMap<string, readonly string[]>;
  readonly active: number;
  /** Those that an importer has taken out of the lists, this one or one that died. */
  readonly held: readonly string[];
}

/** How long an importer that says nothing keeps others out. */
const LEASE_MS = 5_000;

/** BullMQ packs the time and 12 bits of a counter into the score of a delayed job. */
const SCORE_PER_MS = 4_096;

/** The lists of one BullMQ queue in Redis. */
export class BullmqLists {
  readonly #key: (type: string) => string;
  readonly #run: RunScript;
  readonly #token: string;

  /** @param token of this importer alone */
  constructor(
    readonly queue: string,
    key: (type: string) => string,
    run: RunScript,
    token: string,
  ) {
    this.#key = key;
    this.#run = run;
    this.#token = token;
  }

  /** What a job of these lists is called by the rows that hold its place here. */
  get place(): string {
    return this.#key('');
  }

  /** Whether no other importer works. Then none begins until this one ends, or is silent for 5 seconds. */
  async takeLease(): Promise<boolean> {
    return Number(await this.#script('TakeLease', TAKE_LEASE, ['lease'], this.#lease())) === 1;
  }

  async endLease(): Promise<void> {
    await this.#script('EndLease', END_LEASE, ['lease'], [this.#token]);
  }

  async list(): Promise<Listed> {
    const states = ['wait', 'paused', 'prioritized', 'delayed', 'waiting-children'];
    const found = await this.#script('List', LIST, [...states, 'active', 'held'], []);
    const lists = found as unknown[];
    return {
      waiting: new Map(states.map((state, index) => [state, texts(lists[index])])),
      active: Number(lists[5]),
      held: texts(lists[6]),
    };
  }

  /** The jobs as they are, but those that are gone. */
  async look(state: string, ids: readonly string[]): Promise<ReadJob[]> {
    const keys = ['prioritized', 'delayed', 'waiting-children'];
    return toReadJobs(await this.#script('Look', LOOK, keys, [this.place, state, ...ids]));
  }

  /** Takes those from BullMQ's workers that still wait, and returns them. */
  async hold(ids: readonly string[]): Promise<ReadJob[]> {
    const keys = ['lease', 'held', 'wait', 'paused', 'prioritized', 'delayed'];
    return toReadJobs(await this.#script('Hold', HOLD, keys, [...this.#lease(), this.place, ...ids]));
  }

  /** Removes held jobs for good. */
  async drop(ids: readonly string[]): Promise<void> {
    const args = [...this.#lease(), this.place, ...ids];
    await this.#script('Drop', DROP, ['lease', 'held', 'events'], args);
  }

  /** Gives held jobs back to BullMQ's workers, where they were. */
  async putBack(ids: readonly string[]): Promise<void> {
    const keys = ['lease', 'held', 'wait', 'paused', 'prioritized', 'delayed', 'marker'];
    await this.#script('PutBack', PUT_BACK, keys, [...this.#lease(), this.place, ...ids]);
  }

  #lease(): [token: string, ms: string] {
    return [this.#token, String(LEASE_MS)];
  }

  async #script(
    name: string,
    lua: string,
    keys: readonly string[],
    args: readonly string[],
  ): Promise<unknown> {
    try {
      return await this.#run(
        `drizzleQueue${name}`,
        lua,
        keys.map((key) => this.#key(OWN.get(key) ?? key)),
        args,
      );
    } catch (error) {
      if (!(error instanceof Error) || !/\bLEASE\b/.test(error.message)) throw error;
      throw new QueueError(
        `importJobs: this importer was silent for ${LEASE_MS / 1_000} seconds, and another one works on ` +
          `BullMQ's queue '${this.queue}' since. Nothing is lost: run it again`,
      );
    }
  }
}

/** Keys that BullMQ does not know. */
const OWN: ReadonlyMap<string, string> = new Map([
  ['lease', 'drizzle-queue-import-lease'],
  ['held', 'drizzle-queue-import'],
]);

function texts(values: unknown): string[] {
  return Array.isArray(values) ? values.map(String) : [];
}

function toReadJobs(values: unknown): ReadJob[] {
  return Array.isArray(values) ? values.map((value) => toReadJob(texts(value))) : [];
}

function toReadJob(fields: readonly string[]): ReadJob {
  const [id = '', state, score, name = '', data = 'null', opts = '{}'] = fields;
  const [timestamp, priorityText, made, parentKey, schedulerId, deduplicationId = ''] = fields.slice(6);
  const attempts = Number(made);
  const priority = Number(priorityText);
  const createdAt = new Date(Number(timestamp));
  const runAt = state === 'delayed' ? new Date(Math.floor(Number(score) / SCORE_PER_MS)) : createdAt;
  const { attempts: total }: { attempts?: number } = JSON.parse(opts);
  return {
    id,
    name,
    data: JSON.parse(data),
    priority,
    // 0 is none there, and goes before all others; of those the smallest is first.
    stepsBehind: priority,
    runAt,
    attempts,
    attemptsLeft: Math.max((total ?? 1) - attempts, 1),
    createdAt,
    key: bullmqKey(id, deduplicationId === '' ? undefined : deduplicationId),
    keyHolds: 'live',
    serial: undefined,
    unfit: bullmqUnfit({
      hasChildren: state === 'waiting-children',
      hasParent: parentKey !== '',
      isScheduled: schedulerId !== '',
      hasNext: false,
    }),
    state: foreignState(attempts, state === 'delayed'),
  };
}
