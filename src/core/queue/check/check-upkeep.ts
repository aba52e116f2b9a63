import { getTableConfig, type PgTable } from 'drizzle-orm/pg-core';
import type { TableState } from '../../queries/operate/inspect-table.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { quotedName } from '../../sql/quoted-name.ts';
import type { Finding } from './finding.ts';

/** What costs speed or space: storage parameters, autovacuum, and indexes that claims have to maintain. */
export function checkUpkeep(tables: QueueTables, stateOf: (table: PgTable) => TableState): Finding[] {
  const { queueJobs, queueResults } = tables;
  return [
    ...Object.values(tables).flatMap((table) => autovacuumOff(table, stateOf(table))),
    ...claimColumnIndexes(queueJobs, stateOf(queueJobs)),
    ...untuned(queueJobs, stateOf(queueJobs), {
      fillfactor: 50,
      autovacuum_vacuum_scale_factor: 0.02,
      autovacuum_analyze_scale_factor: 0.05,
    }),
    ...untuned(queueResults, stateOf(queueResults), {
      autovacuum_vacuum_scale_factor: 0.02,
      autovacuum_vacuum_insert_scale_factor: 0.05,
    }),
  ];
}

function autovacuumOff(table: PgTable, { storage }: TableState): Finding[] {
  if (
    !storage.some((options) => options.some((option) => /^autovacuum_enabled=(off|false|no|0)$/.test(option)))
  )
    return [];
  const name = quotedName(table);
  return [
    {
      code: 'autovacuum-off',
      severity: 'warning',
      message: `Autovacuum is off for ${name}: finished jobs leave dead rows that are never removed`,
      fix: `alter table ${name} reset (autovacuum_enabled)`,
    },
  ];
}

/** Indexes with a column written by claims or while jobs run, which keeps those writes from being HOT. */
function claimColumnIndexes(queueJobs: QueueTables['queueJobs'], { indexes }: TableState): Finding[] {
  const { attempt, fence, workerId, claimedAt, cancelReason, progress } = queueJobs;
  const written = new Set(
    [attempt, fence, workerId, claimedAt, cancelReason, progress].map((column) => column.name),
  );
  return indexes.flatMap(({ name, uses }): Finding[] => {
    const columns = uses.filter((column) => written.has(column));
    if (columns.length === 0) return [];
    return [
      {
        code: 'index-on-claim-column',
        severity: 'warning',
        message:
          `The index ${name} of ${quotedName(queueJobs)} has ${columns.join(', ')}, ` +
          'written while jobs are claimed and run, so these writes can no longer be HOT updates',
        fix: 'Drop it, or remove those columns from it and from its predicate',
      },
    ];
  });
}

function untuned(
  table: PgTable,
  { storage }: TableState,
  advice: Readonly<Record<string, number>>,
): Finding[] {
  const lacks = Object.keys(advice).filter((parameter) =>
    storage.some((options) => !options.some((option) => option.startsWith(`${parameter}=`))),
  );
  if (lacks.length === 0) return [];
  const name = quotedName(table);
  const settings = lacks.map((parameter) => `${parameter} = ${advice[parameter]}`).join(', ');
  const isPartitioned = storage.length > 1;
  const where = isPartitioned ? `each partition of ${name}` : name;
  const tuned = isPartitioned ? `PARTITION of ${getTableConfig(table).name}` : name;
  return [
    {
      code: 'not-tuned',
      severity: 'hint',
      message: `${where} has no ${lacks.join(', ')}; set it for hundreds of jobs per second or more`,
      fix: `In a custom migration: alter table ${tuned} set (${settings})`,
    },
  ];
}
