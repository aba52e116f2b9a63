/**
 * Nothing is there. The compiler prints this type where it is called, and with it what to write. All that a
 * queue with the feature has there fits, so that such a queue may stand in the place of one without.
 */
// biome-ignore lint/suspicious/noEmptyInterface: see above
export interface Absent<_TWritten extends string> {}

/** Its methods by name: the classes themselves would bring the types of the worker along. */
type Without<TMethod extends string, TWritten extends string> = {
  readonly [K in TMethod]: Absent<TWritten>;
};

/** `queue.schedules` of a queue that was made without: at run time `undefined`. */
export interface NoSchedules
  extends Without<
    'set' | 'remove' | 'pause' | 'resume' | 'runNow' | 'find' | 'list' | 'nextTicks',
    'first write createQueue({ schedules: schedulesIn(queueSchedules) })'
  > {}

/** `queue.limits` of a queue that was made without: at run time `undefined`. */
export interface NoLimits
  extends Without<
    'set' | 'list' | 'groups' | 'unblock',
    'first write createQueue({ limits: limitsIn(control, { … }) })'
  > {}

/** `queue.workflows` of a queue that was made without: at run time `undefined`. */
export interface NoWorkflows
  extends Without<
    | ('signal' | 'redeem' | 'finish' | 'steps' | 'mailboxes' | 'redrive' | 'fork')
    | ('enqueueFlow' | 'enqueueBatch' | 'flow' | 'flows' | 'flowGraph' | 'flowOf' | 'stats')
    | ('cancelFlow' | 'redriveFlow' | 'waitForFlow'),
    'first write createQueue({ workflows: workflowsIn(workflows) })'
  > {}
