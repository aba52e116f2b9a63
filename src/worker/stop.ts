import { QueueError } from '../errors.ts';
import type { WorkerEmitter } from './attempt/events.ts';
import type { ClaimLoop } from './claim/claim-loop.ts';
import type { Watch } from './claim/watch.ts';
import type { Listener } from './presence/listener.ts';
import type { Liveness } from './presence/liveness.ts';
import { resolvesWithin } from './time/resolves-within.ts';
import { sleep } from './time/sleep.ts';
import type { Requests } from './upkeep/requests.ts';

/** The parts of a worker that its stop ends. */
export interface WorkerParts {
  readonly loops: readonly ClaimLoop[];
  readonly watch: Watch | undefined;
  readonly requests: Requests | undefined;
  /** Resolves when no loop claims any more. */
  readonly work: Promise<void>;
  readonly liveness: Liveness;
  readonly listener: Listener;
  readonly events: WorkerEmitter;
  readonly shutdownTimeoutMs: number;
  /** Ends the settling, at the very last. */
  readonly giveUp: AbortController;
}

/** What a stop allows for writing the last outcomes, after the handlers' time and their grace. */
const SETTLE_ALLOWANCE_MS = 5_000;
/** A driver may send what comes at once on the connection that is just going down. */
const RETRY_MS = 100;

/** See `Worker.stop`. Never rejects. */
export async function stopGracefully(parts: WorkerParts): Promise<void> {
  const { loops, watch, requests, work, liveness, listener, shutdownTimeoutMs, giveUp } = parts;
  // Handlers may run on for long and be cancelled meanwhile.
  requests?.look();
  for (const loop of loops) loop.stop();
  watch?.stop();
  const finished = work.then(() => Promise.all(loops.map((loop) => loop.finished())));
  if (!(await resolvesWithin(finished, shutdownTimeoutMs))) {
    for (const loop of loops) loop.interrupt(new QueueError('The worker stops'));
    if (!(await resolvesWithin(finished, SETTLE_ALLOWANCE_MS))) giveUp.abort();
  }
  for (const step of [...loops.map((loop) => () => loop.release()), () => liveness.stop()]) {
    // A database that does not answer must not keep the process from ending.
    await resolvesWithin(twice(step, parts), SETTLE_ALLOWANCE_MS);
  }
  // Last: its connection carries the worker's session, without which peers would take over what handlers are still at.
  await listener.stop();
  requests?.stop();
}

/**
 * Tries again what has failed, once. Without that, one connection that breaks now would cost held jobs an attempt, and peers their seconds
 * to notice. More tries would only keep the process while the database is away.
 */
async function twice(step: () => Promise<void>, { events, giveUp }: WorkerParts): Promise<void> {
  const report = (error: unknown) => events.emit('error', { error, during: 'stopping' });
  await step().catch(async (error: unknown) => {
    report(error);
    await sleep(RETRY_MS, giveUp.signal);
    await step().catch(report);
  });
}
