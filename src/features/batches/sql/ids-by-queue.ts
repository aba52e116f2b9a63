import type { RawRow } from '../../../core/sql/executor.ts';

export function idsByQueue(rows: readonly RawRow[]): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (const row of rows) {
    const queue = String(row.queue);
    const ids = found.get(queue);
    if (ids === undefined) found.set(queue, [Number(row.id)]);
    else ids.push(Number(row.id));
  }
  return found;
}
