import type { Queue } from '../../index.ts';
import { type OwnColumn, ownColumnsOf } from '../../internal.ts';
import { readValue, TAKEN } from '../filter/read-value.ts';
import { misused } from './failure.ts';

/** The values that own columns must have, of texts such as `tenantId=7`; each of its column's type. */
export function ownFilter(queue: Queue, given: readonly string[] = []): Readonly<Record<string, unknown>> {
  const columns = ownColumnsOf(queue.tables.queueJobs);
  const filter: Record<string, unknown> = {};
  for (const each of given) {
    const at = each.indexOf('=');
    const name = at < 0 ? each : each.slice(0, at);
    const column = columns.find(({ key }) => key === name);
    if (at < 1 || column === undefined) {
      const known = columns.map(({ key }) => key).join(', ');
      throw misused(
        known === ''
          ? `--where ${each}: this queue has no columns of its own (their tables come from a queue.config.ts)`
          : `--where ${each}: it must be COLUMN=VALUE, with one of ${known}`,
      );
    }
    if (name in filter) throw misused(`--where has ${name} twice`);
    filter[name] = valueFor(column, each.slice(at + 1));
  }
  return filter;
}

function valueFor({ key, values }: OwnColumn, text: string): unknown {
  if (values !== 'text' && values !== 'custom' && text === 'null') return null;
  const value = readValue(values, text);
  if (value !== undefined) return value;
  throw misused(`--where ${key}=${text}: it must be ${TAKEN[values]}`);
}
