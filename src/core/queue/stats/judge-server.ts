import type { ServerVitals } from '../../queries/operate/inspect-vitals.ts';
import { inWords, judge, unknown } from './make-vital.ts';
import type { Vital } from './queue-vitals.ts';

const MINUTE_MS = 60_000;
const NEVER = Number.POSITIVE_INFINITY;
const MANY_DEAD = 100_000;

/** What makes the queue's tables grow, and claims slow. */
export function judgeServer(server: ServerVitals | undefined): Vital[] {
  if (server === undefined) {
    const message = "The server's statistics could not be read, or not in time";
    const fix = 'Grant this role select on pg_stat_activity, or the role pg_monitor.';
    return [
      unknown('oldest-snapshot', 'ms', message, fix),
      unknown('slot-behind', 'count', message, fix),
      unknown('dead-rows', 'count', message, fix),
      unknown('transaction-age', 'count', message, fix),
    ];
  }
  const { snapshot, slot, deadRows, liveRows, vacuumedMsAgo, transactionAge } = server;
  const vacuumed = vacuumedMsAgo === undefined ? 'never' : `${inWords(vacuumedMsAgo)} ago`;
  // A few dead rows do not matter, however few live rows there are.
  const manyDead = deadRows >= MANY_DEAD && deadRows > 10 * liveRows;
  return [
    ...judge(
      { code: 'oldest-snapshot', unit: 'ms', warningFrom: 5 * MINUTE_MS, errorFrom: 60 * MINUTE_MS },
      snapshot === undefined
        ? []
        : [
            {
              value: snapshot.ms,
              message: `${snapshot.holder} has held a snapshot for ${inWords(snapshot.ms)}`,
              fix: `Dead rows cannot be removed until it ends: ${snapshot.remedy}.`,
            },
          ],
      'No transaction has held a snapshot for five minutes',
    ),
    ...judge(
      { code: 'slot-behind', unit: 'count', warningFrom: 1_000_000, errorFrom: 10_000_000 },
      slot === undefined
        ? []
        : [
            {
              value: slot.transactions,
              message: `The replication slot '${slot.name}' is ${slot.transactions} transactions behind`,
              fix: `It keeps dead rows. Restart its reader, or run pg_drop_replication_slot('${slot.name}').`,
            },
          ],
      'No replication slot keeps many dead rows',
    ),
    ...judge(
      { code: 'dead-rows', unit: 'count', warningFrom: manyDead ? 0 : NEVER, errorFrom: NEVER },
      [
        {
          value: deadRows,
          message: `queue_jobs has ${deadRows} dead and ${liveRows} live rows; last vacuumed ${vacuumed}`,
          fix: 'Look at oldest-snapshot; if nothing holds one, vacuum queue_jobs and tune its autovacuum.',
        },
      ],
      vacuumedMsAgo === undefined
        ? 'Dead rows are few, and autovacuum has not run yet'
        : `Autovacuum keeps up; it last finished ${vacuumed}`,
    ),
    ...judge(
      {
        code: 'transaction-age',
        unit: 'count',
        warningFrom: 500_000_000,
        errorFrom: 1_500_000_000,
      },
      [
        {
          value: transactionAge,
          message: `The oldest row of the queue's tables may be ${transactionAge} transactions old`,
          fix: 'Find out why autovacuum does not freeze rows (oldest-snapshot, slot-behind), and run vacuum.',
        },
      ],
      'Rows are frozen well before wraparound',
    ),
  ];
}
