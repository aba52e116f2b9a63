import { registerWorker } from '../../../src/core/queries/presence/register-worker.ts';
import { Deadlines } from '../../../src/core/time/deadlines.ts';
import { WorkerEmitter } from '../../../src/core/worker/base/events.ts';
import { Liveness, type LivenessOptions } from '../../../src/core/worker/presence/liveness.ts';
import { tables } from '../../queries/support/jobs.ts';
import type { Connection } from '../../support/test-database.ts';

/** The liveness of a registered worker, which looks only when it is told to. */
export async function registered(
  { db }: Connection,
  options: Partial<LivenessOptions> = {},
): Promise<{ workerId: number; liveness: Liveness }> {
  const worker = { name: 'w', queues: ['default'], kinds: ['work'] };
  const workerId = await registerWorker(db, tables, worker);
  const liveness = new Liveness({
    db,
    tables,
    workerId,
    ...worker,
    silentMs: 30_000,
    frozenMs: 60_000,
    reconnectMs: 2_500,
    events: new WorkerEmitter(),
    deadlines: new Deadlines(),
    hasJobs: () => false,
    onSilence: () => {},
    onDeclaredGone: async () => {},
    onOthersGone: () => {},
    onOtherServer: () => undefined,
    onReturn: () => {},
    ...options,
  });
  return { workerId, liveness };
}
