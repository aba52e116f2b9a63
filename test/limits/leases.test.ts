import * as control from 'drizzle-queue/schema/control';
import { beforeAll, onTestFinished, test, vi } from 'vitest';
import { WorkerEmitter } from '../../src/core/worker/base/events.ts';
import { Leases } from '../../src/features/limits/worker/leases.ts';
import type { QueueLimiter } from '../../src/features/limits/worker/queue-limiter.ts';
import { tables } from '../queries/support/jobs.ts';
import { intercepted } from '../queue/support/executors.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase();
beforeAll(() => addControlTables(database));

test.each(['is answered', 'fails'])(
  'what is heard during a look that %s is looked at after it',
  async (end) => {
    // No timer ends a wait: a second look comes because of what was heard, or never.
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const lease = {
      question: { queue: 'q', kind: '*', declared: 1 },
      version: 0,
      inUse: false,
      sharing: 0,
      noteLook: () => {},
      wish: () => undefined,
      nextMs: () => Number.POSITIVE_INFINITY,
    };
    const limiter = { allowances: [{ lease }], noteChange: () => {}, appetite: () => 0 };
    let looks = 0;
    const db = intercepted(database.db, async () => {
      if (looks++ > 0) return;
      leases.look();
      if (end === 'fails') throw new Error('no answer');
    });
    const leases = new Leases({
      db,
      tables: { ...tables, ...control },
      workerId: 1,
      events: new WorkerEmitter(),
    });
    // What it uses of one.
    leases.add(limiter as unknown as QueueLimiter);
    const stop = new AbortController();
    const running = leases.run(stop.signal);
    await until(() => looks === 2);
    stop.abort();
    await running;
  },
);
