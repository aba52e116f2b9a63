import { nowMs } from '../../child/counter.ts';
import { type EnqueuerRequest, openEnqueuer } from '../../child/enqueuer.ts';

export interface ArrivalsRequest extends EnqueuerRequest {
  readonly jobs: number;
  readonly perSecond: number;
  /** Of every so-manieth job the transaction stays open for `openMs`; of none when 0. */
  readonly lateEvery: number;
  readonly openMs: number;
}

/** When the commit of each job was answered, by its number, and which of them were late. */
export interface Arrivals {
  readonly committedMs: Float64Array;
  readonly late: Uint8Array;
}

/** Enqueues jobs at random moments, so many a second on average: they come in bunches, as they do. */
export async function arrivals(request: ArrivalsRequest): Promise<Arrivals> {
  const { jobs, perSecond, lateEvery, openMs } = request;
  const enqueuer = await openEnqueuer(request);
  const committedMs = new Float64Array(jobs);
  const late = new Uint8Array(jobs);
  const open: Promise<void>[] = [];
  let dueMs = nowMs();
  for (let n = 0; n < jobs; n++) {
    const waitMs = dueMs - nowMs();
    // Timers are no finer than a millisecond; what is due within it, is due.
    if (waitMs > 0.5) await new Promise((resolve) => setTimeout(resolve, waitMs));
    open.push(one(n));
    dueMs += (-Math.log(1 - Math.random()) * 1_000) / perSecond;
  }
  await Promise.all(open);
  await enqueuer.close();
  return { committedMs, late };

  async function one(n: number): Promise<void> {
    if (lateEvery > 0 && n % lateEvery === 0) {
      late[n] = 1;
      await enqueuer.late?.(n, openMs);
    } else {
      await enqueuer.enqueue(n);
    }
    committedMs[n] = nowMs();
  }
}
