import { QueueError } from '../../../index.ts';
import { foreignState, type ReadJob } from '../foreign-job.ts';
import { bullmqKey, bullmqUnfit } from './bullmq-jobs.ts';
import { DROP, END_LEASE, HOLD, HOLDS, LIST, LOOK, PUT_BACK, TAKE_LEASE } from './bullmq-scripts.ts';

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
  /** Jobs that an importer has taken out of the lists: this one, or one that died. */
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

  /** What the keys of these lists begin with. */
  get place(): string {
    return this.#key('');
  }

  /**
   * Keeps other importers out until this one ends, or is silent for 5 seconds. Returns what the rows that
   * hold the place of these jobs here are known by: another Redis may have a queue of this name.
   *
   * @returns `undefined`: another importer works
   */
  async takeLease(): Promise<string | undefined> {
    const origin = await this.#script('TakeLease', TAKE_LEASE, ['lease', 'origin'], this.#lease());
    return origin === null ? undefined : `bullmq ${this.place} ${String(origin)} `;
  }

  /** Whether all of these are still held. Not so once another importer has taken over, and has ended. */
  async holds(ids: readonly string[]): Promise<boolean> {
    const args = [...this.#lease(), ...ids];
    return Number(await this.#script('Holds', HOLDS, ['lease', 'held'], args)) === 1;
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
    const keys = ['lease', 'held', 'wait', 'paused', 'prioritized', 'delayed', 'marker', 'meta'];
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
        `importJobs: this importer was silent for ${LEASE_MS / 1_000} seconds, and another has since taken ` +
          `over BullMQ's queue '${this.queue}'. Nothing is lost: run the import again`,
      );
    }
  }
}

/** Keys that BullMQ does not know. Its `removeOrphanedJobs` takes none below `meta:` for a job. */
const OWN: ReadonlyMap<string, string> = new Map([
  ['lease', 'meta:drizzle-queue-import-lease'],
  ['held', 'meta:drizzle-queue-import'],
  ['origin', 'meta:drizzle-queue-import-origin'],
]);

function texts(values: unknown): string[] {
  return Array.isArray(values) ? values.map(String) : [];
}

function toReadJobs(values: unknown): ReadJob[] {
  return Array.isArray(values) ? values.map((value) => toReadJob(texts(value))) : [];
}

function toReadJob(fields: readonly string[]): ReadJob {
  const [id = '', state, score, name = '', dataText, optsText] = fields;
  const [timestamp, priorityText, made, parentKey, schedulerId, deduplicationId = '', next] = fields.slice(6);
  const data = parsed(dataText);
  const opts = parsed(optsText);
  const attempts = Number(made);
  const priority = Number(priorityText);
  const createdAt = new Date(Number(timestamp));
  const runAt = state === 'delayed' ? new Date(Math.floor(Number(score) / SCORE_PER_MS)) : createdAt;
  const total: unknown = Reflect.get(Object(opts), 'attempts') ?? 1;
  const isParsed = data !== undefined && opts !== undefined;
  return {
    id,
    name,
    data,
    json: jsonText(dataText),
    priority,
    // 0 is none there, and goes before all others; of those the smallest is first.
    stepsBehind: priority,
    runAt,
    attempts,
    attemptsLeft: Math.max(Number(total) - attempts, 1),
    createdAt,
    key: bullmqKey(id, deduplicationId === '' ? undefined : deduplicationId),
    keyHolds: 'live',
    serial: undefined,
    unfit: isParsed
      ? bullmqUnfit({
          hasChildren: state === 'waiting-children',
          hasParent: parentKey !== '',
          isScheduled: schedulerId !== '',
          hasNext: next === '1',
        })
      : 'Its data or its options are not JSON',
    state: foreignState(attempts, state === 'delayed'),
  };
}

function jsonText(text = ''): string {
  return text === '' ? '{}' : text;
}

/** As BullMQ reads it; `undefined`: one malformed job must not stop the others. */
function parsed(text = ''): unknown {
  try {
    return JSON.parse(jsonText(text));
  } catch {
    return undefined;
  }
}
