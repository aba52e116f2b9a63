import { QueueError } from '../../../index.ts';
import { checkObject, shown } from '../../../internal.ts';
import type { RedisSource } from '../source.ts';
import { BullmqLists, type RunScript } from './bullmq-lists.ts';

/** A queue of BullMQ 5 or 6 on Redis, as `new Queue(…)` makes it. The importer does not close it. */
export interface BullmqQueue {
  readonly name: string;
  toKey(type: string): string;
  waitUntilReady(): Promise<unknown>;
}

/** The options of {@link from.bullmq}. */
export interface BullmqOptions {
  /** `new Queue('mail', { connection })`, of the package `bullmq`. */
  queue: BullmqQueue;
}

/** The jobs of one queue of BullMQ on Redis that wait, are prioritized or delayed. */
export function bullmqSource({ queue }: BullmqOptions): RedisSource {
  checkObject('from.bullmq: queue', queue);
  if (typeof queue.toKey !== 'function' || typeof queue.waitUntilReady !== 'function') {
    throw new TypeError(`from.bullmq: queue must be a Queue of the package bullmq, got ${shown(queue)}`);
  }
  return {
    type: 'redis',
    title: 'BullMQ',
    async open() {
      await connected(queue);
      const run = await runnerOf(queue);
      return new BullmqLists(queue.name, (type) => queue.toKey(type), run, globalThis.crypto.randomUUID());
    },
  };
}

const CONNECT_MS = 10_000;

/** BullMQ itself tries forever, even with a wrong password. @throws QueueError with the last refusal */
async function connected(queue: BullmqQueue): Promise<void> {
  let refusal: unknown;
  const note = (error: unknown) => {
    refusal = error;
  };
  const listen = (method: 'on' | 'off') => {
    const change: unknown = Reflect.get(queue, method);
    if (typeof change === 'function') Reflect.apply(change, queue, ['error', note]);
  };
  let timer: ReturnType<typeof setTimeout> | undefined;
  const passed = new Promise<void>((_, reject) => {
    timer = setTimeout(() => {
      const why = refusal instanceof Error ? ` (${refusal.message || refusal.name})` : '';
      reject(
        new QueueError(
          `importJobs: BullMQ's queue '${queue.name}' has no connection to Redis after ` +
            `${CONNECT_MS / 1_000} s${why}. Check that Redis runs, and its address and password`,
        ),
      );
    }, CONNECT_MS);
  });
  listen('on');
  try {
    await Promise.race([queue.waitUntilReady(), passed]);
  } finally {
    clearTimeout(timer);
    listen('off');
  }
}

/** What BullMQ's clients have in common: its own scripts run by these. */
interface ScriptClient {
  defineCommand(name: string, script: { numberOfKeys: number; lua: string }): unknown;
  runCommand?(name: string, args: readonly unknown[]): Promise<unknown>;
}

/** @throws TypeError for a queue on Postgres */
async function runnerOf(queue: BullmqQueue): Promise<RunScript> {
  // BullMQ 6 has the client in its backend, 5 in the queue itself.
  const getBackend: unknown = Reflect.get(queue, 'getBackend');
  const owner: unknown = typeof getBackend === 'function' ? Reflect.apply(getBackend, queue, []) : queue;
  const client: unknown = await Reflect.get(Object(owner), 'client');
  if (!isScriptClient(client)) {
    throw new TypeError(
      `from.bullmq: the queue '${queue.name}' has no Redis client. For BullMQ's Postgres backend write ` +
        `from.bullmqPostgres({ queue: '${queue.name}' })`,
    );
  }
  const defined = new Set<string>();
  return async (name, lua, keys, args) => {
    if (!defined.has(name)) client.defineCommand(name, { numberOfKeys: keys.length, lua });
    defined.add(name);
    const values = [...keys, ...args];
    if (client.runCommand !== undefined) return await client.runCommand(name, values);
    const command: unknown = Reflect.get(client, name);
    if (typeof command !== 'function') throw new TypeError(`from.bullmq: the client has no command ${name}`);
    return await Reflect.apply(command, client, values);
  };
}

function isScriptClient(client: unknown): client is ScriptClient {
  return typeof Reflect.get(Object(client), 'defineCommand') === 'function';
}
