/**
 * The moments inside one operation at which something else may come in between: another connection acts, or the answer of a
 * statement that took effect is lost. Each is named after what has just happened.
 */
export type FaultPoint =
  /** A unique key is taken; whose it is has not been asked. */
  | 'enqueue: refused'
  /** It was taken, and whoever had it is gone. */
  | 'enqueue: nobody stands'
  /** The job that is to be cancelled was read. */
  | 'cancel: found'
  /** It does not wait any more; nobody has asked its holder to end it. */
  | 'cancel: not waiting'
  /** Jobs are claimed; their worker does not know it yet. */
  | 'claim: answered'
  /** The jobs of a batch that end are written, those that go back are not. */
  | 'settle: finished'
  /** A batch is written; those who wait for it do not know it yet. */
  | 'settle: written'
  /** `complete(tx)` may run; its statement is not sent. */
  | 'complete: checked'
  /** A check has seen workers that look gone; none is removed. */
  | 'liveness: checked'
  /** A worker that was declared gone is registered again; what it has lost meanwhile has not been asked. */
  | 'liveness: returned'
  /** The attempt of `runNext` is over; its outcome is not written. */
  | 'runNext: ran'
  /** The transaction of `runNext` was rolled back; the outcome is to be written in another. */
  | 'runNext: rolled back';

let act: ((point: FaultPoint) => Promise<void>) | undefined;

/** For tests: what to do at every fault point from now on; nothing without an argument. What it throws, the operation meets. */
export function atFaultPoints(action?: (point: FaultPoint) => Promise<void>): void {
  act = action;
}

/** To be awaited where the point is. Outside of tests it answers undefined; never called for each job, only for each statement. */
export function faultPoint(point: FaultPoint): Promise<void> | undefined {
  return act?.(point);
}
