import { QueueError } from '../../errors.ts';
import { isPoolEnded } from '../drivers/ended-pool.ts';
import { aborted } from '../drivers/listen.ts';
import { resolvesWithin } from '../time/resolves-within.ts';
import { sleep } from '../time/sleep.ts';
import type { Background } from './base/background.ts';
import type { WorkerEmitter } from './base/events.ts';
import { busyOf } from './health.ts';
import type { WorkerParts } from './parts.ts';

export interface StopOptions {
  readonly parts: Pick<WorkerParts, 'loops' | 'liveness' | 'requests' | 'features'>;
  readonly background: Background;
  /** Resolves when no loop claims any more. */
  readonly work: Promise<void>;
  readonly events: WorkerEmitter;
  readonly shutdownTimeoutMs: number;
  /** How long the stop has already waited for a start; one that took long has not begun to claim. */
  readonly startTookMs: number;
  readonly giveUp: AbortController;
}

/** When each step is over, counted from the end of the handlers' time; `stop` promises 5 seconds. */
const SETTLED_MS = 2_500;
const GIVEN_UP_MS = 2_750;
const CLAIMED_MS = 3_500;
const LEFT_MS = 4_250;
const ANSWERED_MS = 4_500;
const ENDED_MS = 4_750;
/**
 * The pauses before further tries of a failed step. A driver may send what comes at once on the connection
 * that is just breaking, and where all of them break the second try may meet another.
 */
const RETRIES_MS = [100, 300, 900];

/** See `Worker.stop`, whose promises it keeps. */
export async function stopGracefully(options: StopOptions): Promise<void> {
  const { parts, background, work, events, shutdownTimeoutMs, startTookMs, giveUp } = options;
  const { loops, liveness, requests, features } = parts;
  for (const loop of loops) loop.stop();
  events.emit('stopping', { running: busyOf(loops), timeoutMs: shutdownTimeoutMs });
  // Handlers may be cancelled meanwhile, and peers must see that the worker lives: the background goes on.
  requests.wake();
  const finished = work.then(() => Promise.all(loops.map((loop) => loop.finished())));
  // Then nothing can be written any more, and more time is of no use to handlers.
  const inVain = aborted(giveUp.signal);
  const isOver = await resolvesWithin(Promise.race([finished, inVain]), shutdownTimeoutMs);
  const startMs = performance.now() - startTookMs;
  const left = (ms: number) => startMs + ms - performance.now();
  if (!isOver || giveUp.signal.aborted) {
    for (const loop of loops) loop.interrupt(new QueueError('The worker stops'));
    await resolvesWithin(finished, left(SETTLED_MS));
  }
  // What could not be written is given up, and given back below.
  giveUp.abort();
  await resolvesWithin(finished, left(GIVEN_UP_MS));
  // Give back what is still held, then leave: a job of a worker that has left costs an attempt.
  const tooLate = new AbortController();
  const giveBack = () =>
    Promise.all(
      loops.map((loop) => insist(() => loop.holdings.giveBack(tooLate.signal), tooLate.signal, options)),
    );
  const giveBackAll = async () => {
    const mayClaim = !(await resolvesWithin(work, 0));
    await giveBack();
    // The last claim may have waited for a lock, and may have taken what was just given back.
    if (mayClaim && (await resolvesWithin(work, left(CLAIMED_MS)))) await giveBack();
  };
  const leave = () => insist(() => liveness.leave(), tooLate.signal, options);
  // Beside them: what a feature has to write is worth no job.
  const written = Promise.all(features.map((part) => part.write?.()));
  const canSend = !isPoolEnded(giveUp.signal.reason);
  const given = canSend ? Promise.all([giveBackAll().then(leave), written]) : Promise.resolve();
  await resolvesWithin(given, left(LEFT_MS));
  tooLate.abort();
  // What was sent by then takes effect before the stop is over, unless the database is silent.
  await resolvesWithin(given, left(ANSWERED_MS));
  // The session ends last: without it peers would take over what handlers are still at.
  await background.end(left(ENDED_MS));
}

/**
 * Tries a failed step again, unless it is too late: a connection that breaks now would cost held jobs an
 * attempt, and peers seconds to notice. More tries would only keep the process during an outage.
 */
async function insist(
  step: () => Promise<void>,
  tooLate: AbortSignal,
  { events }: StopOptions,
): Promise<void> {
  for (const pauseMs of [0, ...RETRIES_MS]) {
    if (pauseMs > 0) await sleep(pauseMs, tooLate);
    if (tooLate.aborted) return;
    try {
      await step();
      return;
    } catch (error) {
      events.emit('error', { error, during: 'stopping' });
    }
  }
}
