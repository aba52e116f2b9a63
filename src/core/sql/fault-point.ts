/**
 * The moments inside an operation at which something else may interfere: another connection acts, or the
 * result of a statement that took effect is lost. Each is named after what has just happened.
 */
export type FaultPoint =
  /** A unique key is taken, and the operation has not yet asked by which job. */
  | 'enqueue: refused'
  /** The key was taken, but the job that had it is gone. */
  | 'enqueue: nobody stands'
  /** A page of jobs was read, and not yet how far the search has come. */
  | 'jobs: browsed'
  /** The job that is to be cancelled was read. */
  | 'cancel: found'
  /** It no longer waits, and its holder has not been asked to end it. */
  | 'cancel: not waiting'
  /** The job that is to run now was read. */
  | 'runNow: found'
  /** Jobs are claimed, but their worker does not know it yet. */
  | 'claim: answered'
  /** Jobs are recorded as begun, but their worker does not know it yet. */
  | 'begin: written'
  /** The finishes of a batch are written, the reschedules are not. */
  | 'settle: finished'
  /** The jobs of a batch that go back are written, but their attempts have not been told. */
  | 'settle: written'
  /** The jobs of a batch that wait are written, but their attempts have not been told. */
  | 'settle: parked'
  /** Steps are done or begun, and what records them has not been sent. */
  | 'step: done'
  /** Steps are recorded, but their handlers do not know it yet. */
  | 'step: recorded'
  /** A job is to be undone, and none of its steps is undone yet. */
  | 'undo: marked'
  /** A fold is on its way: the database may or may not carry it out. */
  | 'fold: sent'
  /** Ends of jobs are counted, and what waited for them is due, but the worker does not know it yet. */
  | 'fold: folded'
  /** A job waits for others, but its handler does not know it yet. */
  | 'children: enqueued'
  | 'wait: written'
  | 'wait: reopened'
  /** A signal is received or waited for, but the handler does not know it yet. */
  | 'signal: received'
  /** A signal is in its mailbox, and the job that waits for it is not yet unparked. */
  | 'signal: sent'
  /** A job that should end from outside was not to be had, and its caller has not asked why. */
  | 'finish: refused'
  /** A job of which another is made is inserted again, and has no steps yet. */
  | 'fork: inserted'
  /** The job that is to go on from a step was read. */
  | 'redrive: found'
  /** `complete(tx)` may run, but its statement has not been sent. */
  | 'complete: checked'
  /** A check has seen workers that look gone, and has removed none. */
  | 'liveness: checked'
  /** A worker that was declared gone is registered again, and has not yet asked what it has lost. */
  | 'liveness: returned'
  /** Schedules are due and were read, and are not fired. */
  | 'schedules: found'
  /** They are fired, but their worker does not know it yet. */
  | 'schedules: fired'
  /** Slots of a limit are taken or given back, but their worker does not know it yet. */
  | 'lease: taken'
  /** Starts of a rate are taken, but their worker does not know it yet. */
  | 'starts: taken'
  /** Jobs are taken from another system's workers, and are not written here. */
  | 'import: held'
  /** They are written, and still there as well. */
  | 'import: written'
  /** They are gone there, and not yet let run here. */
  | 'import: dropped'
  /** The attempt of `runNext` is over; its outcome is not written. */
  | 'runNext: ran'
  /** The transaction of `runNext` was rolled back; the outcome is to be written in another. */
  | 'runNext: rolled back';

let act: ((point: FaultPoint) => Promise<void>) | undefined;

/** For tests: sets or removes the action at every fault point. What it throws reaches the operation. */
export function atFaultPoints(action?: (point: FaultPoint) => Promise<void>): void {
  act = action;
}

/** Awaited at the named moment; `undefined` outside tests. Called once per statement, never per job. */
export function faultPoint(point: FaultPoint): Promise<void> | undefined {
  return act?.(point);
}
