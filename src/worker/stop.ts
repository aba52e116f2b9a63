import { QueueError } from '../errors.ts';
import type { WorkerEmitter } from './attempt/events.ts';
import type { Background } from './background.ts';
import type { WorkerParts } from './parts.ts';
import { resolvesWithin } from './time/resolves-within.ts';
import { sleep } from './time/sleep.ts';

export interface StopOptions {
  readonly parts: Pick<WorkerParts, 'loops' | 'liveness' | 'requests'>;
  readonly background: Background;
  /** Resolves when no loop claims any more. */
  readonly work: Promise<void>;
  readonly events: WorkerEmitter;
  readonly shutdownTimeoutMs: number;
  /** Ends the settling. */
  readonly giveUp: AbortController;
}

/** For handlers that were told to stop, and for writing the last outcomes. */
const SETTLE_MS = 3_000;
/** For giving back what is still held, and for leaving. */
const LEAVE_MS = 1_000;
/** For the parts in the background, whose statements may be under way. */
const END_MS = 500;
/** A driver may send what comes at once on the connection that is just going down. */
const RETRY_MS = 100;

/** See `Worker.stop`. Never rejects, and takes no longer than `shutdownTimeoutMs` and 5 seconds, whatever the database does. */
export async function stopGracefully(options: StopOptions): Promise<void> {
  const { parts, background, work, shutdownTimeoutMs, giveUp } = options;
  const { loops, liveness, requests } = parts;
  for (const loop of loops) loop.stop();
  // Handlers may run on for long and be cancelled meanwhile, so the background goes on.
  requests.wake();
  const finished = work.then(() => Promise.all(loops.map((loop) => loop.finished())));
  if (!(await resolvesWithin(finished, shutdownTimeoutMs))) {
    for (const loop of loops) loop.interrupt(new QueueError('The worker stops'));
    await resolvesWithin(finished, SETTLE_MS);
  }
  giveUp.abort();
  await resolvesWithin(leave(), LEAVE_MS);
  // The session is among it. Without that, peers would take over what handlers are still at.
  await background.end(END_MS);

  async function leave(): Promise<void> {
    await Promise.all(loops.map((loop) => twice(() => loop.release(), options)));
    await twice(() => liveness.leave(), options);
  }
}

/**
 * Tries again what has failed, once. Without that, one connection that breaks now would cost held jobs an attempt, and peers
 * their seconds to notice. More tries would only keep the process while the database is away.
 */
async function twice(step: () => Promise<void>, { events }: StopOptions): Promise<void> {
  const report = (error: unknown) => events.emit('error', { error, during: 'stopping' });
  await step().catch(async (error: unknown) => {
    report(error);
    await sleep(RETRY_MS, new AbortController().signal);
    await step().catch(report);
  });
}
